package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Model says which targets serve a model, and by which names it is asked for.
type Model struct {
	Name string `yaml:"name"`
	// Aliases are other names of it.
	Aliases []string `yaml:"aliases"`
	// Prefixes begin the names that no entry has and that it takes too. Of
	// several that fit the longest counts.
	Prefixes []string `yaml:"prefixes"`
	Targets  []Target `yaml:"targets"`
}

// Target is one of the places that serve a model.
type Target struct {
	Pool string `yaml:"pool"`
	// Model is the name that the pool's servers know; empty: the name of the
	// entry, or what was asked where a prefix fits.
	Model string `yaml:"model"`
	// Weight is the target's share of the sum over its model's targets.
	Weight int `yaml:"weight" min:"0" max:"1000000"`
}

func (t *Target) setDefaults() { t.Weight = 1 }

// Names are the names that models are asked for by, prefixes apart, in the
// order of the file.
func Names(models []Model) []string {
	var out []string
	for _, m := range models {
		out = append(append(out, m.Name), m.Aliases...)
	}
	return out
}

// maxModel is the length of the longest name of a model, in bytes.
const maxModel = 256

func validModel(s string) bool {
	return s != "" && len(s) <= maxModel && utf8.ValidString(s) &&
		!strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

func (v *validator) models(models []Model) {
	names := taken{what: "name", first: map[string]string{}}
	prefixes := taken{what: "prefix", first: map[string]string{}}
	for i, m := range models {
		path := "models[" + strconv.Itoa(i) + "]"
		v.own(&names, path+".name", m.Name)
		for j, a := range m.Aliases {
			v.own(&names, path+".aliases["+strconv.Itoa(j)+"]", a)
		}
		for j, p := range m.Prefixes {
			v.own(&prefixes, path+".prefixes["+strconv.Itoa(j)+"]", p)
		}
		v.targets(path+".targets", m.Targets)
	}
}

// taken are the names that entries of models have, each with its first place.
type taken struct {
	what  string
	first map[string]string
}

// own finds a name that is none, or that is another's already.
func (v *validator) own(t *taken, path, name string) {
	if !validModel(name) {
		v.failf(path, "%s; allowed: 1 to %d bytes of printable text", nameProblem(name), maxModel)
		return
	}
	if first, twice := t.first[name]; twice {
		v.failf(path, "%q is %s too; allowed: each %s once", name, first, t.what)
		return
	}
	t.first[name] = path
}

func (v *validator) targets(path string, targets []Target) {
	if len(targets) == 0 {
		v.failf(path, "has no target; allowed: one or more of {pool, model, weight}")
		return
	}
	sum := 0
	for i, t := range targets {
		at := path + "[" + strconv.Itoa(i) + "]"
		sum += t.Weight
		switch {
		case t.Pool == "":
			v.failf(at+".pool", "is missing; allowed: %s", v.allowedPools())
		case !slices.Contains(v.poolNames, t.Pool):
			v.failf(at+".pool", "there is no pool %q%s; allowed: %s", t.Pool, nearest(t.Pool, v.poolNames), v.allowedPools())
		}
		if t.Model != "" && !validModel(t.Model) {
			v.failf(at+".model", "%s; allowed: 1 to %d bytes of printable text, or no key for the entry's name", nameProblem(t.Model), maxModel)
		}
		if j := slices.IndexFunc(targets[:i], func(u Target) bool { return u.Pool == t.Pool && u.Model == t.Model }); j >= 0 {
			v.failf(at, "has the pool and the model of targets[%d]; allowed: one target with the sum of their weights", j)
		}
	}
	if sum == 0 {
		v.failf(path, "all weights are 0; allowed: at least one above 0")
	}
}

// modelWarnings tell where a name means something else while Envoy runs without
// Inferspan, and any server may get any name, as it was asked.
func modelWarnings(models []Model) []string {
	var out []string
	for i, m := range models {
		asked := Names(models[i : i+1])
		for _, name := range asked {
			out = append(out, mistaken(models, i, name)...)
		}
		for j, t := range m.Targets {
			at := fmt.Sprintf("models[%d].targets[%d]", i, j)
			missing := slices.DeleteFunc(slices.Clone(asked), func(name string) bool {
				return slices.ContainsFunc(models, func(m Model) bool { return m.serves(t.Pool, name) })
			})
			if len(missing) > 0 {
				out = append(out, fmt.Sprintf("%s: %s rewritten to %q: while Envoy runs without Inferspan (failure_mode_allow) the servers of pool %q get the name as asked and answer 404; start them with --served-model-name %s",
					at, areWords(missing), m.served(t), t.Pool, quoted(append([]string{m.served(t)}, missing...), " ")))
			}
			if t.Model != "" && len(m.Prefixes) > 0 {
				out = append(out, fmt.Sprintf("%s: names that begin with %s are rewritten to %q: while Envoy runs without Inferspan (failure_mode_allow) the servers of pool %q get the name as asked and answer 404; start them with --served-model-name %q and each name that clients use, or leave out targets[].model",
					at, quoted(m.Prefixes, " or "), t.Model, t.Pool, t.Model))
			}
		}
	}
	return out
}

// mistaken tells where the name of models[i] is another model's.
func mistaken(models []Model, i int, name string) []string {
	var out []string
	for k, other := range models {
		for _, t := range other.Targets {
			if k == i || other.served(t) != name || models[i].serves(t.Pool, name) {
				continue
			}
			out = append(out, fmt.Sprintf("models[%d]: while Envoy runs without Inferspan (failure_mode_allow) who asks for %q may get another model, of models[%d]: the servers of pool %q know that one by this name; give it another there",
				i, name, k, t.Pool))
		}
	}
	return out
}

// served is the name that m has at the servers of t.
func (m *Model) served(t Target) string {
	if t.Model != "" {
		return t.Model
	}
	return m.Name
}

// serves tells whether the servers of pool know m by name.
func (m *Model) serves(pool, name string) bool {
	return slices.ContainsFunc(m.Targets, func(t Target) bool { return t.Pool == pool && m.served(t) == name })
}

// areWords is names as the subject of a sentence, with its verb.
func areWords(names []string) string {
	if len(names) == 1 {
		return strconv.Quote(names[0]) + " is"
	}
	return quoted(names, ", ") + " are"
}

func quoted(names []string, between string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = strconv.Quote(n)
	}
	return strings.Join(out, between)
}
