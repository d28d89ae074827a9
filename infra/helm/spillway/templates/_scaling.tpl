{{/* Refuses bounds that no autoscaler of the workers takes. */}}
{{- define "spillway.scaling.check" -}}
{{- with .Values.autoscaling -}}
{{- if gt (int .minReplicas) (int .maxReplicas) -}}
{{- fail "autoscaling.minReplicas is above autoscaling.maxReplicas: raise the one or lower the other." -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
Refuses a KEDA that is too old, where its version is known: from the values, or from the label of its resource definition. Rendering
without a cluster knows none. Takes (list root oldest sentence).
*/}}
{{- define "spillway.scaling.kedaVersion" -}}
{{- $version := (index . 0).Values.autoscaling.kedaVersion -}}
{{- if not $version -}}
{{- $definition := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" "scaledobjects.keda.sh" -}}
{{- $version = dig "metadata" "labels" "app.kubernetes.io/version" "" $definition -}}
{{- end -}}
{{- if regexMatch `^v?\d+\.\d+` $version -}}
{{- if semverCompare (printf "<%s.0-0" (index . 1)) $version -}}
{{- fail (printf "%s It takes KEDA %s or newer, and the cluster has %s: upgrade KEDA first." (index . 2) (index . 1) $version) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* How fast workers come and go, whoever reads the queue. */}}
{{- define "spillway.scaling.behavior" -}}
{{- with .Values.autoscaling -}}
# Up at once and by as much as is needed, because people wait; down slowly, because the spike may come back.
scaleUp:
  stabilizationWindowSeconds: 0
  policies: [{ type: Pods, value: {{ .maxReplicas }}, periodSeconds: 15 }]
scaleDown:
  stabilizationWindowSeconds: {{ .scaleDown.stabilizationSeconds }}
  policies: [{ type: Percent, value: {{ .scaleDown.percent }}, periodSeconds: {{ .scaleDown.periodSeconds }} }]
{{- end -}}
{{- end -}}

{{/* The name of the autoscaler of the workers: KEDA names its own after the ScaledObject. */}}
{{- define "spillway.scaling.name" -}}
{{- ternary "keda-hpa-" "" (eq .Values.autoscaling.mode "keda") -}}{{- include "spillway.name" . -}}-worker
{{- end -}}
