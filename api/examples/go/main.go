// A small application whose users log in through Spillway: go run . ADDRESS:PORT
package main

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"os"
	"sync"
	"time"
)

// How long a login may take. The transport has no time limit of its own.
const timeout = 15 * time.Second

type users struct {
	mutex  sync.Mutex
	hashes map[string]string
}

func (users *users) hashOf(name string) *string {
	users.mutex.Lock()
	defer users.mutex.Unlock()
	if hash, known := users.hashes[name]; known {
		return &hash
	}
	return nil
}

func (users *users) add(name, hash string) {
	users.mutex.Lock()
	defer users.mutex.Unlock()
	users.hashes[name] = hash
}

func main() {
	spillway := &Spillway{URL: os.Getenv("SPILLWAY_URL"), Key: os.Getenv("SPILLWAY_KEY"), Client: &http.Client{}}
	known := &users{hashes: map[string]string{}}

	http.HandleFunc("POST /register", func(response http.ResponseWriter, request *http.Request) {
		ctx, cancel := context.WithTimeout(request.Context(), timeout)
		defer cancel()
		hash, err := spillway.Hash(ctx, request.FormValue("password"))
		if err != nil {
			answerError(response, err)
			return
		}
		known.add(request.FormValue("username"), hash)
		answer(response, http.StatusCreated, map[string]string{"username": request.FormValue("username")})
	})
	http.HandleFunc("POST /login", func(response http.ResponseWriter, request *http.Request) {
		ctx, cancel := context.WithTimeout(request.Context(), timeout)
		defer cancel()
		hashOf := func() *string { return known.hashOf(request.FormValue("username")) }
		match, err := spillway.Verify(ctx, request.FormValue("password"), hashOf)
		switch {
		case err != nil:
			answerError(response, err)
		case !match:
			answer(response, http.StatusUnauthorized, map[string]string{"error": "wrong"})
		default:
			answer(response, http.StatusOK, map[string]string{"username": request.FormValue("username")})
		}
	})
	log.Fatal(http.ListenAndServe(os.Args[1], nil))
}

// answerError passes on when to come back.
func answerError(response http.ResponseWriter, err error) {
	var problem *Problem
	if errors.As(err, &problem) && problem.RetryAfter != "" {
		response.Header().Set("Retry-After", problem.RetryAfter)
		answer(response, http.StatusServiceUnavailable, map[string]string{"error": "busy"})
		return
	}
	log.Print(err)
	answer(response, http.StatusInternalServerError, map[string]string{"error": "internal"})
}

func answer(response http.ResponseWriter, status int, body any) {
	response.Header().Set("Content-Type", "application/json")
	response.WriteHeader(status)
	if err := json.NewEncoder(response).Encode(body); err != nil {
		log.Print(err)
	}
}
