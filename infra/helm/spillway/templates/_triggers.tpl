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

{{/* Whether KEDA asks the gateways themselves for the wait that they predict. */}}
{{- define "spillway.trigger.readsGateways" -}}
{{- $scaling := .Values.autoscaling -}}
{{- and $scaling.enabled (eq $scaling.mode "keda") (eq $scaling.trigger "predictedWait") (not $scaling.predictedWait.serverAddress) -}}
{{- end -}}

{{/* The wait that gateways predict, as Prometheus has it or from their ops ports. Twice the target means twice the pods. */}}
{{- define "spillway.trigger.predictedWait" -}}
{{- $predicted := .Values.autoscaling.predictedWait -}}
{{- $ops := printf "%s-gateway-ops" (include "spillway.name" .) -}}
{{- if eq (include "spillway.trigger.readsGateways" .) "true" -}}
- type: metrics-api
  name: predictedWait
  metricType: Value
  metadata:
    # KEDA takes the Service and its namespace from the first two parts of the host, and asks every endpoint.
    url: http://{{ $ops }}.{{ .Release.Namespace }}.svc:9464/metrics
    format: prometheus
    valueLocation: spillway_predicted_wait_seconds
    aggregateFromKubeServiceEndpoints: "true"
    aggregationType: max
    targetValue: {{ $predicted.targetSeconds | quote }}
{{- else -}}
- type: prometheus
  name: predictedWait
  metricType: Value
  metadata:
    serverAddress: {{ $predicted.serverAddress | quote }}
    query: {{ default (printf "max(spillway_predicted_wait_seconds{namespace=%q,service=%q})" .Release.Namespace $ops) $predicted.query | quote }}
    threshold: {{ $predicted.targetSeconds | quote }}
    # No answer is an error, so that the fallback holds the pods, and not a wait of nothing.
    ignoreNullValues: "false"
{{- end }}
  {{- with $predicted.authentication }}
  authenticationRef: { name: {{ . }} }
  {{- end }}
{{- end -}}
