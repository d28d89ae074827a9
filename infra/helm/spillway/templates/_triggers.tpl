{{/* Whom KEDA logs in to Redis as: a user of its own, or the user of the pods. */}}
{{- define "spillway.trigger.login" -}}
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

{{/* How many jobs one of the queue's keys holds; for KEDA, a list or a sorted set. Takes (list root name key addresses). */}}
{{- define "spillway.trigger.redis" -}}
{{- $root := index . 0 -}}
{{- $redis := $root.Values.redis -}}
{{- $login := include "spillway.trigger.login" $root | fromJson -}}
{{- include "spillway.redis.check" $root -}}
- type: {{ get (dict "single" "redis" "several" "redis" "sentinel" "redis-sentinel" "cluster" "redis-cluster") $redis.mode }}
  name: {{ index . 1 }}
  metadata:
    {{ ternary "address" "addresses" (has $redis.mode (list "single" "several")) }}: {{ include "spillway.redis.absoluteAddresses" (list $root (index . 3)) | quote }}
    {{- if eq $redis.mode "sentinel" }}
    sentinelMaster: {{ $redis.sentinelMaster | quote }}
    {{- end }}
    {{- with $login.username }}
    username: {{ . | quote }}
    {{- end }}
    {{- if ne $redis.mode "cluster" }}
    databaseIndex: {{ $redis.database | quote }}
    {{- end }}
    enableTLS: {{ $redis.tls | quote }}
    listName: {{ index . 2 | quote }}
    # Required, and without effect beside a formula.
    listLength: {{ mul $root.Values.worker.cores $root.Values.autoscaling.jobsPerSlot | quote }}
  {{- if or $login.secret $redis.sentinelPassword.secret $root.Values.tls.ca.secret }}
  authenticationRef: { name: {{ include "spillway.name" $root }}-redis }
  {{- end }}
{{- end -}}

{{/* The wait that gateways predict, as Prometheus has it. Twice the target means twice the pods. */}}
{{- define "spillway.trigger.predictedWait" -}}
{{- $predicted := .Values.autoscaling.predictedWait -}}
{{- $ops := printf "%s-gateway-ops" (include "spillway.name" .) -}}
- type: prometheus
  name: predictedWait
  metricType: Value
  metadata:
    serverAddress: {{ required "autoscaling.trigger predictedWait needs autoscaling.predictedWait.serverAddress: the URL of Prometheus." $predicted.serverAddress | quote }}
    query: {{ default (printf "max(spillway_predicted_wait_seconds{namespace=%q,service=%q})" .Release.Namespace $ops) $predicted.query | quote }}
    threshold: {{ $predicted.targetSeconds | quote }}
    # No answer is an error, so that the fallback holds the pods, and not a wait of nothing.
    ignoreNullValues: "false"
  {{- with $predicted.authentication }}
  authenticationRef: { name: {{ . }} }
  {{- end }}
{{- end -}}
