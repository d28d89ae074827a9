{{/* What is wrong with the address of Redis that a schema cannot say. */}}
{{- define "spillway.redis.check" -}}
{{- $redis := .Values.redis -}}
{{- if and (eq $redis.mode "single") (ne (len $redis.addresses) 1) -}}
{{- fail "redis.mode is single, so redis.addresses must name one host: for more, set redis.mode to sentinel or cluster." -}}
{{- end -}}
{{- if and (eq $redis.mode "sentinel") (not $redis.sentinelMaster) -}}
{{- fail "redis.mode is sentinel, so redis.sentinelMaster must name the master that the sentinels watch." -}}
{{- end -}}
{{- if and (ne $redis.mode "sentinel") $redis.sentinelPassword.secret -}}
{{- fail "redis.sentinelPassword is for redis.mode sentinel: the password of Redis itself is redis.password." -}}
{{- end -}}
{{- if and (eq $redis.mode "cluster") (ne (int $redis.database) 0) -}}
{{- fail "redis.mode is cluster, which has database 0 alone: remove redis.database." -}}
{{- end -}}
{{- end -}}

{{/* REDIS_URL as the processes read it. The kubelet puts the passwords in the places of $(REDIS_PASSWORD) and $(SENTINEL_PASSWORD). */}}
{{- define "spillway.redis.url" -}}
{{- include "spillway.redis.check" . -}}
{{- $redis := .Values.redis -}}
{{- $scheme := ternary "rediss" "redis" $redis.tls -}}
{{- $login := ternary (printf "%s:$(REDIS_PASSWORD)@" $redis.username) (ternary (printf "%s@" $redis.username) "" (not (empty $redis.username))) (not (empty $redis.password.secret)) -}}
{{- $scheme -}}
{{- if ne $redis.mode "single" -}}+{{ $redis.mode }}{{- end -}}
://
{{- $login -}}
{{- join "," $redis.addresses -}}
{{- if eq $redis.mode "single" -}}/{{ $redis.database }}{{- end -}}
{{- if eq $redis.mode "sentinel" -}}/{{ $redis.sentinelMaster }}/{{ $redis.database }}{{- end -}}
{{- if $redis.sentinelPassword.secret -}}?sentinelPassword=$(SENTINEL_PASSWORD){{- end -}}
{{- end -}}

{{/* Addresses as seen from another namespace, where KEDA lives: a bare Service name would not resolve there. */}}
{{- define "spillway.redis.absoluteAddresses" -}}
{{- $namespace := .Release.Namespace -}}
{{- $port := ternary ":26379" ":6379" (eq .Values.redis.mode "sentinel") -}}
{{- $absolute := list -}}
{{- range .Values.redis.addresses -}}
{{- $host := regexReplaceAll ":[0-9]+$" . "" -}}
{{- $given := trimPrefix $host . -}}
{{- if not (or (contains "." $host) (hasPrefix "[" $host)) -}}
{{- $host = printf "%s.%s.svc" $host $namespace -}}
{{- end -}}
{{- $absolute = append $absolute (printf "%s%s" $host (default $port $given)) -}}
{{- end -}}
{{- join "," $absolute -}}
{{- end -}}

{{/* The ports that network policies let through: of the addresses, and those named beside them. */}}
{{- define "spillway.redis.ports" -}}
{{- $sentinel := eq .Values.redis.mode "sentinel" -}}
{{- $ports := list -}}
{{- range .Values.redis.addresses -}}
{{- $ports = append $ports (int (default (ternary "26379" "6379" $sentinel) (trimPrefix ":" (regexFind ":[0-9]+$" .)))) -}}
{{- end -}}
{{- /* Sentinels say where the master is: the port that it has unless it was given another. */ -}}
{{- range default (ternary (list 6379) list $sentinel) .Values.networkPolicy.redisPorts -}}
{{- $ports = append $ports (int .) -}}
{{- end -}}
{{- range uniq $ports }}
- { port: {{ . }}, protocol: TCP }
{{- end }}
{{- end -}}

{{/*
The keys that hold the queue's unfinished jobs as BullMQ makes them, by what the scaler calls them: open jobs, ticketed jobs, and
jobs in hand. A job in none of them would be one that the scaler does not see.
*/}}
{{- define "spillway.redis.queueKeys" -}}
{{- $queue := printf "%s:passwords" .Values.redis.queuePrefix -}}
{{- dict "open" (printf "%s:wait" $queue) "ticketed" (printf "%s:prioritized" $queue) "active" (printf "%s:active" $queue) | toJson -}}
{{- end -}}

{{/* Environment of every process that speaks to Redis. */}}
{{- define "spillway.redis.env" -}}
{{- range $name, $password := dict "REDIS_PASSWORD" .Values.redis.password "SENTINEL_PASSWORD" .Values.redis.sentinelPassword }}
{{- if $password.secret }}
{{ include "spillway.env.secret" (list $name (dict "secret" $password.secret "key" (default $password.key $password.urlKey))) }}
{{- end }}
{{- end }}
- name: REDIS_URL
  value: {{ include "spillway.redis.url" . | quote }}
- name: QUEUE_PREFIX
  value: {{ .Values.redis.queuePrefix | quote }}
{{- end -}}
