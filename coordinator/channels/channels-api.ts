/** The API of channels: what it takes and answers. */
import { z } from "zod";
import { type ApiOperations, answer, dateTime, errorAnswer } from "../web/api-operation.ts";
import { channelBounds } from "./channel.ts";

const channel = z
  .object({
    channelId: z.int(),
    host: z.string(),
    directories: z
      .array(z.string().max(2048))
      .max(50)
      .describe("Each begins and ends with /; / is the whole host."),
    seeds: z.array(z.string().max(2048)).max(200).describe("Crawled regardless of include."),
    include: z
      .array(z.string().max(300))
      .max(50)
      .describe("Patterns of path and query: * is anything, a final $ the end. Empty: everything."),
    exclude: z.array(z.string().max(300)).max(50).describe("Skipped, included or not."),
    maxDepth: z.int().nullable().describe("Links from a seed; null: as the scope says."),
    createdAt: dateTime(),
    expectedPages: z.int().nullable().describe("Its pages in the index; null: not counted yet."),
    settled: z.boolean().describe("False: URLs that were already in the frontier are still being updated."),
  })
  .meta({ id: "Channel" });

const channels = z.object({ channels: z.array(channel) }).meta({ id: "Channels" });

const url = z.string().min(1).max(2100);
const pattern = z.string().min(1).max(400);
const patterns = z.array(pattern).max(channelBounds.patterns);

export const addChannelBody = z.strictObject({
  prefixes: z
    .array(url)
    .min(1)
    .max(channelBounds.directories)
    .describe("A host, or directories of one host, each ending with /."),
  seeds: z.array(url).max(channelBounds.seeds).default([]).describe("Crawled regardless of include."),
  include: patterns
    .default([])
    .describe("Patterns of path and query: * is anything, a final $ the end. Empty: everything."),
  exclude: patterns.default([]).describe("Skipped, included or not."),
  maxDepth: z.int().min(0).max(channelBounds.depth).nullable().default(null),
});

const coveredSeed = z.strictObject({
  url: z.string(),
  state: z.string().nullable().describe("Null: it is not in the frontier."),
  lastOutcome: z.string().nullable(),
  lastStatus: z.int().nullable(),
  fetches: z.int(),
});

export const coverage = z
  .strictObject({
    channelId: z.int().nullable().describe("Null: the whole host."),
    host: z.string(),
    directories: z.array(z.string()),
    maxDepth: z.int().describe("Links from a seed that are followed."),
    seeds: z.array(coveredSeed).describe("1,000 at most."),
    state: z
      .enum(["in-progress", "complete", "cut", "blocked"])
      .describe("cut: everything in the crawl was requested, and more is known that was skipped."),
    cutBy: z.array(z.enum(["budget", "depth"])),
    words: z.string(),
    fetched: z.int().describe("URLs that were requested at least once."),
    waiting: z.int().describe("Due or in progress, and never requested."),
    gone: z.int(),
    refusedByRobots: z.int(),
    held: z.int().describe("Found over the host's budget, and held back."),
    leftOut: z.int().describe("How often a URL beyond those held back was found; of the whole host."),
    tooDeep: z
      .int()
      .describe("URLs that its deepest pages link to and that are not in the crawl; counted to 1,000."),
    deepest: z.int().describe("Links from a seed."),
    more: z.boolean().describe("The host has more URLs than the 100,000 that were counted."),
  })
  .meta({ id: "Coverage" });

export const channelsApi = {
  coverage: {
    method: "get",
    path: "/api/coverage",
    needs: "read",
    summary: "How far the crawl of channels and seeds has come, and what limited it",
    description:
      "For every channel, or for what one parameter names. As CSV, one line per seed: format=csv, up to 1,000 channels or hosts.",
    parameters: {
      query: {
        channel: z.string().optional().meta({ description: "Its number.", example: "3" }),
        submission: z.string().optional().meta({
          description: "The channels and hosts of the URLs submitted with it.",
          example: "7",
        }),
        host: z.string().optional().meta({ description: "The whole host.", example: "www.example.org" }),
        format: z.enum(["csv"]).optional().meta({ description: "csv: as a table.", example: "csv" }),
      },
    },
    answers: {
      200: answer(
        z
          .strictObject({ coverage: z.array(coverage), more: z.boolean().describe("There are more.") })
          .meta({ id: "CoverageList" }),
      ),
      400: errorAnswer("The parameter is not as described"),
      404: errorAnswer("There is no such channel, submission or host"),
    },
  },
  channels: {
    method: "get",
    path: "/api/channels",
    needs: "read",
    summary: "Channels: what is crawled of parts of hosts",
    description:
      "Needs the scope read where the pages are not open to everybody. A host without a channel is crawled as the scope says. Also as CSV: format=csv.",
    answers: { 200: answer(channels) },
  },
  addChannel: {
    method: "post",
    path: "/api/channels",
    needs: "policy-write",
    summary: "Crawl of a host or some of its directories what seeds, filters and depth say",
    description: "URLs found before that the channel skips are not requested again until it is removed.",
    body: {
      schema: addChannelBody,
      example: {
        prefixes: ["https://www.example.org/docs/"],
        seeds: ["https://www.example.org/docs/"],
        include: ["/docs/*.html$"],
        exclude: ["/docs/old/"],
        maxDepth: 5,
      },
    },
    answers: {
      201: answer(channel),
      422: errorAnswer(
        "The settings contradict each other, or another channel of the host; each fault is named",
      ),
    },
  },
  removeChannel: {
    method: "post",
    path: "/api/channels/{number}/remove",
    needs: "policy-write",
    summary: "Crawl it as the scope says",
    description: "What the channel had skipped is due again.",
    parameters: { path: { number: z.int().meta({ description: "As listed.", example: 3 }) } },
    body: { schema: z.strictObject({}), example: {} },
    answers: { 200: answer(channel), 404: errorAnswer("There is no channel with this number") },
  },
} satisfies ApiOperations;
