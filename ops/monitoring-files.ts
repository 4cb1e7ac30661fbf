/**
 * Generates files for Prometheus and Grafana from the coordinator's metrics and alert rules at build time
 * (dist/monitoring/): a rule per alert, which fires while the coordinator lists the alert, and a panel per metric.
 */
import { alertRules } from "#coordinator/tell/overview/alert-rules";
import { createMetrics } from "#coordinator/tell/overview/metrics";

interface PrometheusRule {
  readonly alert: string;
  readonly expr: string;
  readonly for: string;
  readonly severity: string;
  readonly summary: string;
  /** The alert's heading in ops/runbook/alerts.md. */
  readonly section: string;
}

/** Alerts that no coordinator can raise: that it is down, and those that only show over time. */
const overTime: readonly PrometheusRule[] = [
  {
    ...{ alert: "NearcrawlDown", expr: 'up{job="nearcrawl"} == 0', for: "2m", severity: "critical" },
    ...{ summary: "A coordinator does not answer Prometheus.", section: "coordinator-silent" },
  },
  {
    ...{ alert: "NearcrawlAbsent", expr: "absent(nearcrawl_build_info)", for: "5m", severity: "critical" },
    summary: "No coordinator is among what Prometheus asks: its target or its token is gone.",
    section: "coordinator-silent",
  },
  {
    alert: "NearcrawlNothingFetched",
    expr: 'sum(rate(nearcrawl_pages_total[15m])) == 0 and on () max(nearcrawl_queue_hosts{reason="in-line"}) > 0',
    ...{ for: "15m", severity: "warning", section: "queue-age" },
    summary: "Hosts are due and nothing is in their way, and no page has come for a quarter of an hour.",
  },
  {
    alert: "NearcrawlPagesSlow",
    expr: "histogram_quantile(0.95, sum by (le, route) (rate(nearcrawl_http_request_seconds_bucket[10m]))) > 2",
    ...{ for: "15m", severity: "warning", section: "database-slow" },
    summary: "Pages of {{ $labels.route }} take {{ $value | humanizeDuration }}.",
  },
];

/** An alert must last this long before it fires, so that flapping ones stay silent. */
const patience = { critical: "2m", warning: "15m", info: "1h" } as const;

/** YAML whose scalars have JSON's syntax. */
export function alertRulesYaml(): string {
  const listed = alertRules.map(({ name, severity }): PrometheusRule => {
    const camel = name.replace(/(^|-)([a-z])/g, (_, _dash, letter: string) => letter.toUpperCase());
    return {
      alert: `Nearcrawl${camel}`,
      expr: `max by (name) (nearcrawl_alerts{name="${name}"}) > 0`,
      for: patience[severity],
      severity,
      summary: `${name} ({{ $value }}): see /alerts, or nearcrawl alerts.`,
      section: name,
    };
  });
  const rules = [...overTime, ...listed].map(
    (rule) => `      - alert: ${rule.alert}
        expr: ${JSON.stringify(rule.expr)}
        for: ${rule.for}
        labels:
          severity: ${rule.severity}
        annotations:
          summary: ${JSON.stringify(rule.summary)}
          runbook: ops/runbook/alerts.md#${rule.section}
`,
  );
  return `groups:\n  - name: nearcrawl\n    rules:\n${rules.join("")}`;
}

/** Metrics by row in display order, without `nearcrawl_` and `_total`. */
const rows: Readonly<Record<string, string>> = {
  Crawling: "pages fetched_bytes shipped_bytes fetches fetch_failures results urls_admitted index_pages",
  "What waits":
    "queue_hosts queue_age_seconds frontier_urls leases spooled_results crawler_spooled_results " +
    "frontier_left_out_urls frontier_bound_hosts link_outbox_links link_outbox_age_seconds " +
    "links_applied",
  Delegation:
    "accuracy_ratio accuracy_interval_ratio accuracy_samples probes rounds rounds_under_way probes_under_way subnets moves",
  Crawlers:
    "sessions crawlers crawler_up crawler_subnets crawler_open_leases crawler_fetched_bytes crawler_shipped_bytes release_crawlers incidents sessions_refused",
  "The coordinator":
    "coordinator_leads database_up database_writable database_round_trip_seconds " +
    "http_request_seconds event_loop_delay_seconds database_free_bytes database_bytes " +
    "job_failures job_last_success_timestamp_seconds figures_written_timestamp_seconds " +
    "registry_applied_timestamp_seconds process_resident_memory_bytes process_cpu_seconds",
  Alerts: "alerts alert_deliveries alert_channel_failures alert_messages_waiting",
  "Other coordinators": "foreign_urls_waiting foreign_urls_dropped exchanged_urls coordinator_exchanges",
  "What sites want": "stated_pages payments_asked challenges",
  Search: "search_index_pages search_index_bytes search_index_behind_seconds",
};

interface Metric {
  readonly name: string;
  readonly help: string;
  readonly type: unknown;
  readonly labelNames?: readonly string[];
}

/** Metrics shown per coordinator. All others are summed. */
const ofEach = /^(process|event_loop|search_index|database_(up|writable))/;
const summed = /^(sessions|rounds_under_way|probes_under_way|coordinator_leads)$/;

const datasource = { type: "prometheus", uid: `\${${"datasource"}}` };
const columns = 3;
const [panelWidth, panelHeight] = [24 / columns, 8];

/** A dashboard for import into Grafana 10 and later, which asks for the data source. */
export function dashboardJson(): string {
  const metrics = createMetrics({ processMetrics: true }).registry.getMetricsAsArray() as unknown as Metric[];
  const named = new Map(metrics.map((one) => [one.name.replace(/^nearcrawl_|_total$/g, ""), one]));
  const panels: object[] = [];
  let y = 0;
  for (const [title, names] of Object.entries(rows)) {
    const place = { h: 1, w: 24, x: 0, y };
    panels.push({ id: panels.length + 1, type: "row", title, collapsed: false, gridPos: place, panels: [] });
    const shown = names.split(" ");
    for (const [at, name] of shown.entries()) {
      const x = (at % columns) * panelWidth;
      const gridPos = {
        ...{ h: panelHeight, w: panelWidth, x },
        y: y + 1 + Math.floor(at / columns) * panelHeight,
      };
      panels.push({ id: panels.length + 1, gridPos, ...panelOf(name, named.get(name)!) });
    }
    y += 1 + Math.ceil(shown.length / columns) * panelHeight;
  }
  const variable = { name: "datasource", label: "Data source", type: "datasource", query: "prometheus" };
  return `${JSON.stringify(
    {
      ...{
        title: "Nearcrawl",
        uid: "nearcrawl-overview",
        tags: ["nearcrawl"],
        schemaVersion: 38,
        version: 1,
      },
      ...{ editable: true, graphTooltip: 1, refresh: "30s", time: { from: "now-6h", to: "now" } },
      templating: { list: [variable] },
      panels,
    },
    null,
    2,
  )}\n`;
}

function panelOf(name: string, { help, type, name: metric, labelNames = [] }: Metric) {
  const isCounter = type === "counter";
  const isBytes = name.endsWith("_bytes");
  const by = (...more: readonly string[]) => {
    const labels = [...more, ...labelNames.filter((label) => label !== "status")];
    return labels.length === 0 ? "" : ` by (${labels.join(", ")})`;
  };
  const expr = isCounter
    ? `sum${by()} (rate(${metric}[5m]))${isBytes || name.includes("seconds") ? "" : " * 60"}`
    : type === "histogram"
      ? `histogram_quantile(0.95, sum${by("le")} (rate(${metric}_bucket[5m])))`
      : `${summed.test(name) ? "sum" : "max"}${by(...(ofEach.test(name) ? ["instance"] : []))} (${metric})`;
  const shown = labelNames.includes("crawler") ? `topk(10, ${expr})` : expr;
  const per = isCounter ? (isBytes || name.includes("seconds") ? " per second" : " per minute") : "";
  const title = `${name.slice(0, 1).toUpperCase()}${name.slice(1)}`.replace(/_(bytes|seconds|ratio)$/, "");
  const unit = isBytes
    ? isCounter
      ? "Bps"
      : "bytes"
    : name.endsWith("_ratio")
      ? "percentunit"
      : name.endsWith("_seconds") && !isCounter
        ? "s"
        : "short";
  return {
    ...{
      type: "timeseries",
      title: `${title.replaceAll("_", " ")}${per}`,
      description: `${help}.`,
      datasource,
    },
    targets: [
      {
        ...{ refId: "A", datasource },
        expr: name.includes("timestamp") ? `time() - ${shown}` : shown,
        legendFormat: labelNames.length === 0 ? "__auto" : labelNames.map((one) => `{{${one}}}`).join(" "),
      },
    ],
    fieldConfig: {
      defaults: { unit, min: 0, custom: { fillOpacity: 10, showPoints: "never" } },
      overrides: [],
    },
    options: { tooltip: { mode: "multi", sort: "desc" } },
  };
}
