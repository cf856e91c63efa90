package meter

// Begin is what an exchange's ids and head decision are made from.
type Begin struct {
	Operation string
	Model     string
	// Envoy is the traceparent of the ext_proc stream's gRPC metadata, Client
	// the request's own header; each empty where none came.
	EnvoyTraceparent, EnvoyTracestate   string
	ClientTraceparent, ClientTracestate string
	// Wish is what a client that is trusted asks of the trace; "": nothing.
	Wish string
}
