{{/*
An expression of the rules, about this release alone. Takes (list root expression). What its pods tell is known by the namespace
and the Services that they are scraped by, what its rules record by the labels that they give it, its autoscaler by its name.
*/}}
{{- define "spillway.rule.expression" -}}
{{- $root := index . 0 -}}
{{- $expression := index . 1 -}}
{{- $name := include "spillway.name" $root -}}
{{- $namespace := printf "namespace=%q" $root.Release.Namespace -}}
{{- $pods := printf `${0}{%s,service=~"%s-(gateway|worker)-ops"}` $namespace $name -}}
{{- $rules := printf `${0}{%s,release=%q}` $namespace $root.Release.Name -}}
{{- $expression = regexReplaceAll `\b(spillway|nodejs)_\w+` $expression $pods -}}
{{- $expression = regexReplaceAll `\bspillway:[\w:]+` $expression $rules -}}
{{- $expression = regexReplaceAll `\bkube_\w+` $expression (printf `${0}{%s}` $namespace) -}}
{{- $expression = replace `keda-hpa-.*worker.*` (include "spillway.scaling.name" $root) $expression -}}
{{- /* Those that had matchers now have two pairs of braces. */ -}}
{{- replace `}{` `,` $expression -}}
{{- end -}}
