module example.test/login

go 1.22
