/** The registry's jobs for people: a table, or one of them with the steps on its way. */
import { orderWords, type RegistryJob } from "#coordinator/registry/jobs";
import { formatTable } from "../output.ts";
import { printable } from "../printable.ts";
import { secondsText } from "./progress-text.ts";

export function jobsText(jobs: readonly RegistryJob[]): string {
  if (jobs.length === 0) return "no job was started yet: the page /registry starts them";
  return formatTable(
    [
      { title: "job", align: "right" },
      { title: "what" },
      { title: "state" },
      { title: "started" },
      { title: "took", align: "right" },
      { title: "by" },
      { title: "" },
    ],
    jobs.map((job) => [
      String(job.jobId),
      orderWords(job.order),
      job.state,
      timeText(job.startedAt),
      tookText(job),
      printable(job.askedBy, 40),
      printable(job.state === "running" ? job.progress.text : (job.words ?? ""), 120),
    ]),
  );
}

export function jobText(job: RegistryJob): string {
  const { jobId, order, state, startedAt, askedBy, via, words, progress } = job;
  const ending = state === "running" ? "" : `, took ${tookText(job)}`;
  return [
    `job ${jobId}: ${orderWords(order)}: ${state}`,
    `asked for by ${printable(askedBy, 120)} (${via}), started ${timeText(startedAt)}${ending}`,
    ...(words === null ? [] : words.split("\n").map((line) => `  ${printable(line, 400)}`)),
    ...[...progress.lines, progress.text].map((line) => `  ${printable(line, 400)}`),
    ...next(job),
  ].join("\n");
}

function next({ jobId, order, state }: RegistryJob): readonly string[] {
  if (order.type !== "plan" || state !== "done") return [];
  return [`to be looked at, and applied, on the page /registry/plans/${jobId}`];
}

const timeText = (iso: string) => iso.slice(0, 19).replace("T", " ");

function tookText({ startedAt, endedAt }: RegistryJob): string {
  return endedAt === null ? "" : secondsText((Date.parse(endedAt) - Date.parse(startedAt)) / 1000);
}
