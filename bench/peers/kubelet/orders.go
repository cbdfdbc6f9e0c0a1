package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

// The protocol of bench/sync.py, one JSON object per line: see bench/peers/orders.py.

type start struct {
	Server    string  `json:"server"`
	Token     string  `json:"token"`
	Authority string  `json:"authority"`
	Node      string  `json:"node"`
	QPS       float32 `json:"qps"`
	Burst     int     `json:"burst"`
}

type started struct {
	Pods  int  `json:"pods"`
	Ready bool `json:"ready"`
}

type order struct {
	// Nil requests a report.
	Ready *bool `json:"ready"`
}

type set struct {
	BeganNs int64 `json:"began_ns"`
}

type report struct {
	CPUSeconds float64 `json:"cpu_seconds"`
	Requests   int64   `json:"requests"`
}

type lines struct {
	in  *bufio.Scanner
	out *json.Encoder
}

func newLines() *lines {
	return &lines{in: bufio.NewScanner(os.Stdin), out: json.NewEncoder(os.Stdout)}
}

// next reads a line into a value; it returns false at the end of the input.
func (l *lines) next(into any) (bool, error) {
	if !l.in.Scan() {
		return false, l.in.Err()
	}
	if err := json.Unmarshal(l.in.Bytes(), into); err != nil {
		return false, fmt.Errorf("invalid order: %w", err)
	}
	return true, nil
}
