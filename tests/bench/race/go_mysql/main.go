// The rows of binlog files with go-mysql's parser: race ROUNDS FILE... prints the number of row images, and the
// processor time of each round, as JSON.
package main

import (
	"encoding/json"
	"os"
	"strconv"
	"syscall"

	"github.com/go-mysql-org/go-mysql/replication"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func cpu() float64 {
	var usage syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

func rows(files []string) int {
	images := 0
	for _, file := range files {
		parser := replication.NewBinlogParser()
		check(parser.ParseFile(file, 4, func(event *replication.BinlogEvent) error {
			if found, ok := event.Event.(*replication.RowsEvent); ok {
				images += len(found.Rows)
			}
			return nil
		}))
	}
	return images
}

func main() {
	rounds, err := strconv.Atoi(os.Args[1])
	check(err)
	images, seconds := 0, []float64{}
	for range rounds {
		begin := cpu()
		images = rows(os.Args[2:])
		seconds = append(seconds, cpu()-begin)
	}
	check(json.NewEncoder(os.Stdout).Encode(map[string]any{"rows": images, "cpu": seconds}))
}
