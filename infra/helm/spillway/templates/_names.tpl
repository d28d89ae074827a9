{{/* What the chart is called in names and labels. */}}
{{- define "spillway.chart" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 47 | trimSuffix "-" -}}
{{- end -}}

{{/*
The start of all names: the release's name, which already says what it is when it holds the chart's. The longest name that follows is
keda-hpa-<name>-worker, which KEDA refuses above 63 characters.
*/}}
{{- define "spillway.name" -}}
{{- $chart := include "spillway.chart" . -}}
{{- $name := ternary .Release.Name (printf "%s-%s" .Release.Name $chart) (contains $chart .Release.Name) -}}
{{- default $name .Values.fullnameOverride | trunc 47 | trimSuffix "-" -}}
{{- end -}}

{{/* What picks all pods of the release. */}}
{{- define "spillway.selector.release" -}}
app.kubernetes.io/name: {{ include "spillway.chart" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{/* What picks the pods of a component. Takes (list root component). Never changes: selectors cannot. */}}
{{- define "spillway.selector" -}}
{{ include "spillway.selector.release" (index . 0) }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{/* All labels of an object of a component, and of its pods the given ones. Takes (list root component labels?). */}}
{{- define "spillway.labels" -}}
{{- $root := index . 0 -}}
{{- $fixed := dict "app.kubernetes.io/version" $root.Chart.AppVersion "app.kubernetes.io/managed-by" $root.Release.Service -}}
{{- $_ := set $fixed "helm.sh/chart" (printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_") -}}
{{- $given := ternary (last .) (dict) (eq (len .) 3) -}}
{{- /* The first that names a label decides: no value changes what selectors and others rely on. */ -}}
{{- merge (include "spillway.selector" . | fromYaml) $fixed $given $root.Values.commonLabels | toYaml -}}
{{- end -}}

{{/* An image by digest where one is given, else by tag. Takes (list root image). */}}
{{- define "spillway.image" -}}
{{- $image := index . 1 -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ default (index . 0).Chart.AppVersion $image.tag }}
{{- end -}}
{{- end -}}
