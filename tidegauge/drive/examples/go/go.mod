module example.org/broker

go 1.21
