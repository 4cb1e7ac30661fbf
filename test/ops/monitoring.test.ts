/** Prometheus, Grafana and the runbook list exactly what the coordinator has. */
import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { alertRules } from "#coordinator/tell/overview/alert-rules";
import { createMetrics } from "#coordinator/tell/overview/metrics";
import { alertRulesYaml, dashboardJson } from "#ops/monitoring-files";

const read = (path: string) => readFileSync(new URL(`../../ops/${path}`, import.meta.url), "utf8");

const rules = alertRulesYaml();
const dashboard = JSON.parse(dashboardJson()) as Dashboard;
const runbook = read("runbook/monitoring.md") + read("runbook/alerts.md");
const { registry } = createMetrics({ processMetrics: true });

interface Dashboard {
  readonly uid: string;
  readonly schemaVersion: number;
  readonly templating: { readonly list: readonly { readonly name: string; readonly type: string }[] };
  readonly panels: readonly Panel[];
}
interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly datasource?: { readonly type: string; readonly uid: string };
  readonly targets?: readonly { readonly expr: string; readonly refId: string }[];
}

const expressions = dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));

/** A histogram is queried by its parts. */
function metricsIn(text: string): Set<string> {
  const names = text.match(/\bnearcrawl_[a-z0-9_]+/g) ?? [];
  return new Set(names.map((name) => name.replace(/_(bucket|sum|count)$/, "")));
}

function known(): Set<string> {
  return new Set(registry.getMetricsAsArray().map(({ name }) => name));
}

it("every metric that rules, dashboard and runbook name exists", () => {
  const named = metricsIn([rules, runbook, ...expressions].join("\n"));

  expect(named.size).toBeGreaterThan(25);
  expect([...named].filter((name) => !known().has(name))).toEqual([]);
});

it("the dashboard shows every metric but those of Node itself", () => {
  const shown = metricsIn(expressions.join("\n"));
  const ofNode = /^nearcrawl_(nodejs|process)_|^nearcrawl_build_info$/;

  expect([...known()].filter((name) => !shown.has(name) && !ofNode.test(name))).toEqual([]);
});

it("names follow Prometheus' conventions: counters end in _total, times are seconds, and units are told", () => {
  const metrics = registry.getMetricsAsArray().filter(({ name }) => !/nodejs|process/.test(name));
  const faults = metrics.flatMap(({ name, help, type }) => {
    const isCounter = String(type) === "counter";
    return [
      isCounter !== name.endsWith("_total") && `${name}: counters, and only they, end in _total`,
      /_(ms|millis|minutes|kb|percent)(_|$)/.test(name) && `${name}: not a base unit`,
      help.length < 10 && `${name}: no help`,
    ].filter((fault) => fault !== false);
  });

  expect(faults).toEqual([]);
});

it("every rule leads to a section of the runbook, and every alert has one and a rule of its own", () => {
  const sections = new Set([...runbook.matchAll(/^#+ (.+)$/gm)].map(([, title]) => anchorOf(title ?? "")));
  const links = [...rules.matchAll(/runbook: ops\/runbook\/alerts\.md#(\S+)/g)].map(([, anchor]) => anchor);
  const names = alertRules.map(({ name }) => name);

  expect(links.length).toBe([...rules.matchAll(/- alert: Nearcrawl[A-Z][A-Za-z]+\n/g)].length);
  expect(links.filter((anchor) => !sections.has(anchor ?? ""))).toEqual([]);
  expect(names.filter((name) => !sections.has(name))).toEqual([]);
  expect(names.filter((name) => !rules.includes(`nearcrawl_alerts{name=\\"${name}\\"}`))).toEqual([]);
});

it("the dashboard can be imported: panels of their own id and place, over a data source that is chosen", () => {
  const ids = dashboard.panels.map(({ id }) => id);
  const [first] = dashboard.templating.list;
  const panels = dashboard.panels.filter(({ type }) => type !== "row");

  expect(new Set(ids).size).toBe(ids.length);
  expect(first).toMatchObject({ name: "datasource", type: "datasource" });
  expect(
    panels.filter(({ datasource }) => datasource?.uid !== "${" + "datasource}").map(({ title }) => title),
  ).toEqual([]);
  expect(panels.filter(({ targets = [] }) => targets.length === 0)).toEqual([]);
  expect(panels.filter(({ description = "" }) => description === "")).toEqual([]);
  expect(overlapping(dashboard.panels)).toEqual([]);
});

it("log lines have fixed messages: variable parts are in the fields", () => {
  const faults = sourcesBelow("coordinator").flatMap(({ file, text }) =>
    [...text.matchAll(/\blog(?:\.\w+|\[[^\]]+\])\((?:[^;]|\n)*?;/g)]
      .filter(([call]) => call.includes("`"))
      .map(([call]) => `${file}: ${call.slice(0, 80)}`),
  );

  expect(faults).toEqual([]);
});

function sourcesBelow(folder: string): { file: string; text: string }[] {
  const root = new URL(`../../${folder}/`, import.meta.url);
  return readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts"))
    .map((file) => ({ file, text: readFileSync(new URL(file, root), "utf8") }));
}

/** As GitHub makes them. */
function anchorOf(title: string): string {
  return title
    .trim()
    .toLowerCase()
    .replace(/[^\w\- ]/g, "")
    .replaceAll(" ", "-");
}

function overlapping(panels: readonly Panel[]): string[] {
  return panels.flatMap((a, index) =>
    panels
      .slice(index + 1)
      .filter(({ gridPos: b }) => {
        const { x, y, w, h } = a.gridPos;
        return x < b.x + b.w && b.x < x + w && y < b.y + b.h && b.y < y + h;
      })
      .map((b) => `${a.title} and ${b.title}`),
  );
}
