/** The page that a refused form was sent from is shown again only to people who may open it. */
import type { FastifyRequest } from "fastify";
import { expect, it } from "vitest";
import { z } from "zod";
import { form } from "#coordinator/ask/document";
import { type AnyOperation, operationsOf } from "#coordinator/ask/operation";
import { formSender } from "#coordinator/ask/questions";
import { anonymousVisit } from "#coordinator/web/access";
import type { Actor } from "#core/actor";

const { get, post } = operationsOf<object>();
const input = z.object({ name: z.string() });
const output = z.object({ name: z.string() });

const rename = post({
  ...{ path: "/api/crawlers/{name}/rename", page: "/crawlers/:name/rename", needs: "fleet-write" },
  ...{ summary: "Rename", input, output },
  run: async ({ input: { name } }) => ({ name }),
});
let runs = 0;
const crawlerPage = get({
  ...{ path: "/api/crawlers/{name}", page: "/crawlers/:name", needs: "fleet-read", crawlerIn: "name" },
  ...{ summary: "A crawler", input, output },
  run: async ({ input: { name } }) => {
    runs += 1;
    return { name };
  },
  view: ({ name }) => ({
    title: `The secrets of ${name}`,
    nodes: [form({ operation: rename as AnyOperation, path: { name } })],
  }),
});
const senderOf = formSender([crawlerPage as AnyOperation, rename as AnyOperation], {});

const sentBy = async (actor: Partial<Actor>, referer = "http://coordinator.example/crawlers/athens") => {
  runs = 0;
  const headers = { host: "coordinator.example", referer, accept: "text/html" };
  const request = { headers, url: "/crawlers/athens/rename", ip: "192.0.2.1" };
  const who: Actor = { ...{ name: "anna", role: "staff", scopes: [], crawlers: [] }, ...actor };
  const refused = {
    ...{ operation: rename as AnyOperation, to: "/crawlers/athens/rename" },
    ...{ values: { name: "athens" }, fault: "taken" },
  };
  const visit = { ...anonymousVisit, actor: who };
  const page = await senderOf(request as unknown as FastifyRequest, refused, { visit, now: new Date(0) });
  return [page?.path ?? null, runs];
};

it.each([
  ["a person with the right", { scopes: ["fleet-read"] }, ["/crawlers/athens", 1]],
  ["the crawler's partner", { role: "partner", crawlers: ["athens"] }, ["/crawlers/athens", 1]],
  ["a person without the right", { scopes: ["read", "fleet-write"] }, [null, 0]],
  ["another crawler's partner", { role: "partner", crawlers: ["berlin"] }, [null, 0]],
] as const)("%s sees the page again, or nothing of it", async (_, actor, seen) => {
  expect(await sentBy(actor)).toEqual(seen);
});

it.each([
  ["no address", ""],
  ["another site", "http://evil.example/crawlers/athens"],
  ["a page without the form", "http://coordinator.example/crawlers/berlin"],
])("a form sent from %s leads to no page", async (_, referer) => {
  expect((await sentBy({ scopes: ["fleet-read"] }, referer))[0]).toBeNull();
});
