// A service that verifies access tokens by their issuer alone, with go-oidc.
package main

import (
	"context"
	"encoding/json"
	"log"
	"net/http"
	"os"
	"strings"

	"github.com/coreos/go-oidc/v3/oidc"
)

func main() {
	provider, err := oidc.NewProvider(context.Background(), os.Getenv("ISSUER"))
	if err != nil {
		log.Fatal(err)
	}
	// go-oidc calls the audience a client. The algorithms are those of the issuer's document.
	verifier := provider.Verifier(&oidc.Config{ClientID: os.Getenv("AUDIENCE")})
	handler := func(w http.ResponseWriter, r *http.Request) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		verified, err := verifier.Verify(r.Context(), token)
		if err != nil || !strings.EqualFold(scheme, "bearer") {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "unauthorized", http.StatusUnauthorized)
			return
		}
		json.NewEncoder(w).Encode(map[string]string{"user": verified.Subject})
	}
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), http.HandlerFunc(handler)))
}
