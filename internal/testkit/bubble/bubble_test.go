package bubble

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, due := time.Now(), false
		time.AfterFunc(time.Hour, func() { due = true })
		Pass(time.Hour)
		if took := time.Since(begun); took != time.Hour || !due {
			t.Errorf("%v passed, want 1h; done what was due by then: %t", took, due)
		}
	})
}

// A test that is in no bubble would sleep.
func TestPass_Outside(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("it has let real time pass")
		}
	}()
	Pass(time.Hour)
}
