// kfake is a cluster of two of franz-go's fake brokers on the loopback. It says where the first one listens and what it is
// built from, and runs until it is ended.
package main

import (
	"fmt"
	"os"
	"runtime/debug"

	"github.com/twmb/franz-go/pkg/kfake"
)

const module = "github.com/twmb/franz-go"

func main() {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(2))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("listens on %s: kfake %s with franz-go %s\n", cluster.ListenAddrs()[0], built(module+"/pkg/kfake"), built(module))
	select {}
}

// built is the version of a module in this program.
func built(path string) string {
	info, _ := debug.ReadBuildInfo()
	for _, one := range info.Deps {
		if one.Path == path {
			return one.Version
		}
	}
	return "of an unknown version"
}
