/**
 * What Prometheus may ask for at /metrics. Counters for whatever the runbook asks about; the flows' callers
 * feed them, so that flows stay free of them.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import { CoordinatorMetrics } from "../federation/coordinator-metrics.ts";
import { createOperationMetrics, type OperationMetrics } from "./operation-metrics.ts";

export interface Metrics {
  readonly registry: Registry;
  /** Results by how the fetch ended: `fetched`, `http-error` … */
  readonly fetches: Counter<"outcome">;
  readonly pages: Counter;
  readonly fetchedBytes: Counter;
  readonly shippedBytes: Counter;
  /** Results by what became of them here: `stored`, `duplicate`, `without-lease`. */
  readonly results: Counter<"taken">;
  readonly urlsAdmitted: Counter;
  readonly probes: Counter<"method" | "outcome">;
  readonly rounds: Counter<"policy" | "cause" | "decided">;
  readonly roundsUnderWay: Gauge;
  readonly probesUnderWay: Gauge;
  /** Leases by event: `granted`, `returned`, `expired`. */
  readonly leases: Counter<"event">;
  /** Delegations moved without a round, by cause. */
  readonly moves: Counter<"cause">;
  readonly sessions: Gauge;
  readonly sessionsRefused: Counter<"code">;
  /** What crawlers and strangers did that they should not have done, by kind. */
  readonly incidents: Counter<"kind">;
  /** Crawlers by release and what became of it there: `offered`, `running`, `returned` … */
  readonly releases: Gauge<"version" | "state">;
  readonly requestSeconds: Histogram<"route" | "status">;
  /** What is, beside what happened. */
  readonly operation: OperationMetrics;
  /** Of the exchange with parent and children. */
  readonly coordinators: CoordinatorMetrics;
}

/** `processMetrics` adds memory, event loop and garbage collection of this process. */
export function createMetrics(options: { readonly processMetrics?: boolean } = {}): Metrics {
  const registry = new Registry();
  if (options.processMetrics) collectDefaultMetrics({ register: registry, prefix: "nearcrawl_" });
  const registers = [registry];
  const counter = <Label extends string = never>(name: string, help: string, labelNames: Label[] = []) =>
    new Counter<Label>({ name: `nearcrawl_${name}_total`, help, labelNames, registers });
  const gauge = (name: string, help: string) => new Gauge({ name: `nearcrawl_${name}`, help, registers });
  return {
    registry,
    fetches: counter("fetches", "Results stored, by how the fetch ended", ["outcome"]),
    pages: counter("pages", "Pages stored"),
    fetchedBytes: counter("fetched_bytes", "Decoded body bytes of the pages that crawlers fetched"),
    shippedBytes: counter("shipped_bytes", "Compressed bytes that results took on the wire"),
    results: counter("results", "Results that arrived, by what became of them", ["taken"]),
    urlsAdmitted: counter("urls_admitted", "URLs new to the frontier"),
    probes: counter("probes", "Latency probes, by method and outcome", ["method", "outcome"]),
    rounds: counter("rounds", "Probe rounds, by policy, cause and whether they decided", [
      "policy",
      "cause",
      "decided",
    ]),
    roundsUnderWay: gauge("rounds_under_way", "Probe rounds not decided yet"),
    probesUnderWay: gauge("probes_under_way", "Probes not answered yet"),
    leases: counter("leases", "Leases granted, returned, expired", ["event"]),
    moves: counter("moves", "Subnets moved between crawlers without a round", ["cause"]),
    sessions: gauge("sessions", "Crawlers connected now"),
    sessionsRefused: counter("sessions_refused", "Sessions refused or ended by the coordinator", ["code"]),
    incidents: counter("incidents", "Incidents (nearcrawl fleet incidents), by kind", ["kind"]),
    releases: new Gauge({
      name: "nearcrawl_release_crawlers",
      help: "Crawlers by release and what became of it there",
      labelNames: ["version", "state"],
      registers,
    }),
    requestSeconds: new Histogram({
      name: "nearcrawl_http_request_seconds",
      help: "Seconds that pages and API answers took, by route and status",
      labelNames: ["route", "status"],
      buckets: [0.005, 0.02, 0.05, 0.15, 0.5, 2, 10],
      registers,
    }),
    operation: createOperationMetrics(registry),
    coordinators: new CoordinatorMetrics(registry),
  };
}
