/** The explorer's addresses: its views as pages and JSON, and a list whole as CSV. */
import { setTimeout as wait } from "node:timers/promises";
import type { WebPart } from "../web/actions.ts";
import { FileTurns } from "../web/file-turns.ts";
import type { AskedView, SentFile } from "../web/views.ts";
import { type ExplorePorts, everySubnet, readQuestion, showExplore, subnetColumns } from "./answer.ts";
import { exploreApi } from "./explore-api.ts";
import { exploreBody, exploreTitle, notReadyBody } from "./page.ts";

/** A page waits so long for the first reading before it says that it goes on. */
const patienceMs = 2000;
const notReady = "The explorer is still reading what is known. Try again in a moment.";

export function exploreRoutes(ports: ExplorePorts): WebPart {
  const files = new FileTurns();
  return ({ views }) => {
    views.describe({
      path: "/explore",
      operation: exploreApi.explore,
      view: async (asked) => await exploreView(asked, ports),
    });
    views.addFile({
      path: "/explore/subnets.csv",
      needs: "read",
      boundedElsewhere: true,
      file: async (asked) => await listFile(asked, ports, files),
    });
  };
}

async function exploreView({ query, now }: AskedView, ports: ExplorePorts) {
  const question = readQuestion(query);
  if (typeof question === "string") return question;
  const world = await readyWorld(ports);
  if (world === null)
    return {
      status: 503,
      value: { error: { status: 503, message: notReady } },
      title: "Explore",
      refreshSeconds: 2,
      body: notReadyBody,
    };
  const value = await showExplore(ports, world, question);
  const crawlers = ports.state.crawlers.map(({ name }) => name).sort();
  return {
    status: 200,
    value,
    title: exploreTitle(value),
    body: () => exploreBody(value, { question, crawlers, now: now.toISOString() }),
  };
}

async function readyWorld({ explorer }: ExplorePorts) {
  return await Promise.race([explorer.world(), wait(patienceMs, null, { ref: false })]);
}

async function listFile(
  { query }: AskedView,
  ports: ExplorePorts,
  files: FileTurns,
): Promise<SentFile | string> {
  const question = readQuestion(query);
  if (typeof question === "string") return question;
  const world = await readyWorld(ports);
  if (world === null) return notReady;
  return files.csv({
    name: "subnets",
    columns: subnetColumns,
    pieces: everySubnet(ports, world, question),
  });
}
