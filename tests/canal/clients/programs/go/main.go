// canal-go: follow HOST PORT DESTINATION reads a destination until it is ended, over lost connections.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/withlin/canal-go/client"
	pbe "github.com/withlin/canal-go/protocol/entry"
	"google.golang.org/protobuf/proto"
)

var out = bufio.NewWriter(os.Stdout)

func show(fields ...string) {
	out.WriteString(strings.Join(fields, "\t") + "\n")
}

func image(columns []*pbe.Column) []string {
	values := make([]string, len(columns))
	for i, column := range columns {
		if column.GetIsNull() {
			values[i] = `\N`
		} else {
			values[i] = column.GetValue()
		}
	}
	return values
}

func showPosition(header *pbe.Header) {
	show("at", header.GetLogfileName(), strconv.FormatInt(header.GetLogfileOffset(), 10))
}

func showEntry(entry *pbe.Entry) error {
	header := entry.GetHeader()
	if entry.GetEntryType() != pbe.EntryType_ROWDATA {
		showPosition(header)
		return nil
	}
	change := &pbe.RowChange{}
	if err := proto.Unmarshal(entry.GetStoreValue(), change); err != nil {
		return err
	}
	if change.GetIsDdl() {
		showPosition(header)
	}
	for _, row := range change.GetRowDatas() {
		fields := []string{"row", header.GetTableName(), change.GetEventType().String()}
		fields = append(append(fields, image(row.GetBeforeColumns())...), "|")
		show(append(fields, image(row.GetAfterColumns())...)...)
	}
	return nil
}

// follow returns when its connection ends. The client panics where the server answers with an error.
func follow(host string, port int, destination string) (err error) {
	defer func() {
		if found := recover(); found != nil {
			err = fmt.Errorf("%v", found)
		}
	}()
	c := client.NewSimpleCanalConnector(host, port, "", "", destination, 60000, 60*60*1000)
	defer c.DisConnection()
	if err := c.Connect(); err != nil {
		return err
	}
	if err := c.Subscribe(`.*\.load_.*`); err != nil {
		return err
	}
	show("connected")
	out.Flush()
	timeout, milliseconds := int64(200), int32(2)
	for {
		message, err := c.GetWithOutAck(100, &timeout, &milliseconds)
		if err != nil {
			return err
		}
		if message.Id == -1 || len(message.Entries) == 0 {
			continue
		}
		show("batch", strconv.FormatInt(message.Id, 10))
		for i := range message.Entries {
			if err := showEntry(&message.Entries[i]); err != nil {
				return err
			}
		}
		show("ack", strconv.FormatInt(message.Id, 10))
		out.Flush()
		if err := c.Ack(message.Id); err != nil {
			return err
		}
	}
}

func main() {
	port, err := strconv.Atoi(os.Args[2])
	if err != nil {
		panic(err)
	}
	for {
		err := follow(os.Args[1], port, os.Args[3])
		show("lost", strings.Join(strings.Fields(fmt.Sprint(err)), " "))
		out.Flush()
		time.Sleep(200 * time.Millisecond)
	}
}
