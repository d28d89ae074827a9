package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// Spillway is a client of Spillway's service API. It is safe for concurrent use.
type Spillway struct {
	URL    string
	Key    string
	Client *http.Client
}

// Problem is an answer of RFC 9457: what was asked for was not done.
type Problem struct {
	Code   string `json:"code"`
	Detail string `json:"detail"`
	// RetryAfter is in seconds, empty where trying again makes no sense.
	RetryAfter string `json:"-"`
}

func (problem *Problem) Error() string {
	return fmt.Sprintf("spillway: %s: %s", problem.Code, problem.Detail)
}

// Verify tells whether a password matches the hash that hashOf reads from the database: nil for an unknown user, which takes as long and
// never matches. The hash is read again after a match, and verified where it is another one: an old password opens no session, although it
// was sent before its change.
func (spillway *Spillway) Verify(ctx context.Context, password string, hashOf func() *string) (bool, error) {
	storedHash := hashOf()
	for {
		var answer struct {
			Match      bool   `json:"match"`
			HashDigest string `json:"hashDigest"`
		}
		request := map[string]any{"password": password, "storedHash": storedHash}
		if err := spillway.call(ctx, "/v1/passwords/verify", request, &answer); err != nil || !answer.Match {
			return false, err
		}
		storedHash = hashOf()
		if storedHash == nil {
			return false, nil
		}
		digest := sha256.Sum256([]byte(*storedHash))
		if answer.HashDigest == base64.StdEncoding.EncodeToString(digest[:]) {
			return true, nil
		}
	}
}

// Hash makes a new hash by the policy of the workers.
func (spillway *Spillway) Hash(ctx context.Context, password string) (string, error) {
	var answer struct {
		Hash string `json:"hash"`
	}
	err := spillway.call(ctx, "/v1/passwords/hash", map[string]any{"password": password}, &answer)
	return answer.Hash, err
}

// call sends a request, and redeems its ticket where the answer takes longer than a request is held.
func (spillway *Spillway) call(ctx context.Context, path string, request any, answer any) error {
	for {
		status, body, err := spillway.post(ctx, path, request)
		if errors.Is(err, context.DeadlineExceeded) {
			return &Problem{Code: "timeout", Detail: "no answer in time", RetryAfter: "1"}
		}
		if err != nil {
			return err
		}
		if status != http.StatusAccepted {
			return json.Unmarshal(body, answer)
		}
		var pending struct {
			Ticket string `json:"ticket"`
		}
		if err := json.Unmarshal(body, &pending); err != nil {
			return err
		}
		path, request = "/v1/tickets/redeem", pending
	}
}

func (spillway *Spillway) post(ctx context.Context, path string, request any) (int, []byte, error) {
	sent, err := json.Marshal(request)
	if err != nil {
		return 0, nil, err
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, spillway.URL+path, bytes.NewReader(sent))
	if err != nil {
		return 0, nil, err
	}
	post.Header.Set("Authorization", "Bearer "+spillway.Key)
	post.Header.Set("Content-Type", "application/json")
	response, err := spillway.Client.Do(post)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= http.StatusBadRequest {
		problem := Problem{RetryAfter: response.Header.Get("Retry-After")}
		if err := json.Unmarshal(body, &problem); err != nil {
			return 0, nil, err
		}
		return 0, nil, &problem
	}
	return response.StatusCode, body, err
}
