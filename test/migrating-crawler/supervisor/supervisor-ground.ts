/** Shared by the supervisor's tests: a world of releases per file, and supervisors that are stopped after each test. */
import { afterAll, afterEach, beforeAll } from "vitest";
import type { SupervisorTiming } from "#crawler/supervisor/supervisor-home";
import { until } from "../../support/until.ts";
import {
  type Behaviour,
  bundleText,
  type Home,
  type Published,
  type ReleaseWorld,
  type RunningSupervisor,
  startReleaseWorld,
  startSupervisor,
} from "./release-world.ts";

export const soonMs = 20_000;
export let world: ReleaseWorld;
export const running: RunningSupervisor[] = [];
let versions = 0;

/** Call at the top of a test file. */
export function useReleaseWorld(): void {
  beforeAll(async () => {
    world = await startReleaseWorld();
  });
  afterEach(async () => {
    await Promise.all(running.splice(0).map(({ stop }) => stop()));
    for (const list of ["revocations", "timestamp"]) world.files.delete(`/releases/${list}.json`);
    world.files.set("/releases/keys.json", `{"rotations":[]}`);
    world.handlers.clear();
  });
  afterAll(() => world.close());
}

/** No two tests share a version or digest. */
export const nextVersion = () => `1.${++versions}.0`;

export function publish(behaviour: Behaviour = "well"): Published {
  const version = nextVersion();
  return world.publish(version, bundleText(version, behaviour));
}

export type Supervised = RunningSupervisor & { readonly home: Home; readonly first: Published };

/** A supervisor whose first release runs and is good. */
export async function supervised(
  timing: Partial<SupervisorTiming> = {},
  settings = "",
  now?: () => Date,
): Promise<Supervised> {
  const home = world.newHome(settings);
  const first = publish();
  world.offerToAll(first);
  const supervisor = { ...(await startSupervisor(home, timing, now)), home, first };
  running.push(supervisor);
  await until(() => supervisor.state().good?.digest === first.digest, soonMs);
  return supervisor;
}

export const reports = ({ state }: RunningSupervisor) =>
  state().reports.map(({ version, state: what }) => [version, what]);

export const reasonOf = (
  { state }: RunningSupervisor,
  { version }: Pick<Published, "version">,
  what?: string,
) => state().reports.findLast((one) => one.version === version && (what ?? one.state) === one.state)?.reason;
