package route

// WantsPrefix tells whether some pool picks by the prompt's prefix, so that
// Request.Prefix is worth being waited for.
func (r *Router) WantsPrefix() bool { return r.table.Load().byPrefix }
