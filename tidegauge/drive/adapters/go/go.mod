module tidegauge.example/broker

go 1.21
