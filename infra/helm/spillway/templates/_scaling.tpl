{{/* How fast workers come and go, whichever autoscaler decides. */}}
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

{{/* The Redis user of KEDA: its own, or the user of the pods. */}}
{{- define "spillway.scaling.redisUser" -}}
{{- $own := .Values.autoscaling.redisUser -}}
{{- $pods := .Values.redis -}}
{{- if and $own.username (not $own.secret) -}}
{{- fail "autoscaling.redisUser.username needs autoscaling.redisUser.secret: the Secret that holds the password of that user." -}}
{{- end -}}
{{- if $own.username -}}
{{- $own | toJson -}}
{{- else -}}
{{- dict "username" $pods.username "secret" $pods.password.secret "key" $pods.password.key | toJson -}}
{{- end -}}
{{- end -}}

{{/* A trigger that counts the jobs in one key of the queue. Takes (list root name key). */}}
{{- define "spillway.scaling.trigger" -}}
{{- $root := index . 0 -}}
{{- $redis := $root.Values.redis -}}
{{- $user := include "spillway.scaling.redisUser" $root | fromJson -}}
- type: {{ get (dict "single" "redis" "sentinel" "redis-sentinel" "cluster" "redis-cluster") $redis.mode }}
  name: {{ index . 1 }}
  metadata:
    {{ ternary "address" "addresses" (eq $redis.mode "single") }}: {{ include "spillway.redis.absoluteAddresses" $root | quote }}
    {{- if eq $redis.mode "sentinel" }}
    sentinelMaster: {{ $redis.sentinelMaster | quote }}
    {{- end }}
    {{- with $user.username }}
    username: {{ . | quote }}
    {{- end }}
    {{- if ne $redis.mode "cluster" }}
    databaseIndex: {{ $redis.database | quote }}
    {{- end }}
    enableTLS: {{ $redis.tls | quote }}
    listName: {{ index . 2 | quote }}
    # Required, and without effect beside a formula.
    listLength: {{ mul $root.Values.worker.cores $root.Values.autoscaling.jobsPerSlot | quote }}
  {{- if or $user.secret $redis.sentinelPassword.secret $root.Values.tls.ca.secret }}
  authenticationRef: { name: {{ include "spillway.name" $root }}-redis }
  {{- end }}
{{- end -}}
