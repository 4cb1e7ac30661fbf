/** Access while the database is down: people seen a moment ago may read, others may not. */
import type { FastifyRequest } from "fastify";
import { expect, it } from "vitest";
import { type Access, openAccess, type Visit } from "#coordinator/web/access";
import { hashCrawlerKey } from "#coordinator/web/secrets";
import { rememberingAccess } from "#coordinator/web/session-access";
import { scopes } from "#core/actor";

const asked = (token: string | null, method = "GET") =>
  ({
    method,
    headers: token === null ? {} : { authorization: `Bearer ${token}` },
  }) as unknown as FastifyRequest;

const operator: Visit = {
  actor: { name: "anna", role: "operator", scopes, crawlers: [] },
  ...{ signedInAs: "anna", formToken: "f", said: null },
};
const badToken = { status: 401, title: "Invalid token", words: "It opens nothing." };

function newAccess() {
  const world = {
    silence: null as string | null,
    /** By a single look-up. */
    found: null as string | null,
    nowMs: 0,
    identify: (async (request) =>
      request.headers.authorization === "Bearer good" ? operator : badToken) as Access["identify"],
  };
  const access = rememberingAccess(
    { ...openAccess, identify: (request) => world.identify(request) },
    {
      silence: () => world.silence,
      look: async () => world.found,
      hash: hashCrawlerKey,
      nowMs: () => world.nowMs,
    },
  );
  return { world, access };
}

it("people seen within a quarter of an hour may read, but change nothing", async () => {
  const { world, access } = newAccess();
  await access.identify(asked("good"));
  world.silence = "the database does not answer";

  world.nowMs = 900_000;
  const known = await access.identify(asked("good"));
  const stranger = await access.identify(asked("other"));
  world.nowMs = 900_001;
  const late = await access.identify(asked("good"));

  expect(known).toMatchObject({
    actor: { name: "anna", scopes: ["read", "metrics-read", "fleet-read", "audit-read"] },
    formToken: null,
  });
  expect([stranger, late]).toMatchObject([{ status: 503 }, { status: 503 }]);
});

it("requests without credentials need no look-up", async () => {
  const { world, access } = newAccess();
  world.silence = "the database does not answer";
  world.identify = openAccess.identify;

  expect(await access.identify(asked(null))).toMatchObject({ actor: { role: "anybody" } });
});

it("people once refused are forgotten, and a failed look-up is answered from memory", async () => {
  const { world, access } = newAccess();
  await access.identify(asked("good"));
  const { identify } = world;
  world.identify = () => Promise.reject(new Error("Connection terminated"));
  const failed = await access.identify(asked("good"));
  world.identify = async () => badToken;
  const refused = await access.identify(asked("good"));
  world.identify = () => Promise.reject(new Error("Connection terminated"));
  const forgotten = await access.identify(asked("good"));
  world.identify = identify;

  expect(failed).toMatchObject({ actor: { name: "anna" } });
  expect(refused).toMatchObject({ status: 401 });
  expect(forgotten).toMatchObject({ status: 503 });
});

it("a database not known to be down is asked; a slow one is waited for", async () => {
  const { world, access } = newAccess();
  await access.identify(asked("good"));
  let answer: (visit: Visit) => void = () => {};
  world.identify = () =>
    new Promise((resolve) => {
      answer = resolve;
    });

  const slow = access.identify(asked("good"));
  setTimeout(() => answer(operator), 400);
  const waitedFor = await slow;
  world.found = "the database does not answer within 1 s";
  const remembered = await access.identify(asked("good"));

  expect(waitedFor).toEqual(operator);
  expect(remembered).toMatchObject({ actor: { name: "anna" }, formToken: null });
});
