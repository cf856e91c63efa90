package testkit

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Tool returns the path of a program that `make tools` built: from
// INFERSPAN_TOOLS if set, else from the checkout, else from the user's cache.
func Tool(name string) (string, error) {
	var places []string
	if dir := os.Getenv("INFERSPAN_TOOLS"); dir != "" {
		places = append(places, dir)
	} else {
		if root, err := ModuleRoot(); err == nil {
			places = append(places, filepath.Join(root, ".tools"))
		}
		if home, err := os.UserHomeDir(); err == nil {
			places = append(places, filepath.Join(home, ".cache", "inferspan", "tools"))
		}
	}
	for _, place := range places {
		path := filepath.Join(place, "bin", name)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("no %s in %s: run `make tools`", name, strings.Join(places, " or "))
}
