/** A plan that a job made: what it found, whether it still holds, and what has to be confirmed before it is applied. */
import type { ImportPlan } from "#rir-import/plan";
import { shrunkRegistries } from "#rir-import/shrinkage";
import type { FilesPlace, RegistryJobWithResult } from "./jobs.ts";
import { cacheValue, type KnownPlan, type RegistryPorts } from "./registry-view.ts";

const jobsLooked = 100;

/** Null: the job made no plan that this version can show. */
export async function knownPlan(
  job: RegistryJobWithResult,
  ports: RegistryPorts,
  now: Date,
): Promise<KnownPlan | null> {
  const plan = planOf(job);
  if (plan === null || job.order.type !== "plan") return null;
  const jobs = await ports.store.list(jobsLooked);
  const applying = jobs.find(({ order }) => order.type === "apply" && order.planId === job.jobId);
  return {
    jobId: job.jobId,
    madeAt: job.endedAt ?? job.startedAt,
    plan,
    files: job.order.files,
    outdated: await outdatedWords(plan, { files: job.order.files, ports, now }),
    shrunk: shrunkRegistries(plan.registries, ports.shrinkageWarningShare),
    appliedBy: applying ? { jobId: applying.jobId, state: applying.state } : null,
  };
}

/** Written by `rir plan --json`; one by an older version may lack what is newer. */
function planOf({ order, state, result }: RegistryJobWithResult): ImportPlan | null {
  if (order.type !== "plan" || state !== "done" || typeof result !== "object" || result === null) return null;
  return "fingerprint" in result && "registries" in result ? (result as ImportPlan) : null;
}

interface Around {
  readonly files: FilesPlace;
  readonly ports: RegistryPorts;
  readonly now: Date;
}

/** What can be seen at a glance; the import itself looks again at every byte. */
async function outdatedWords(plan: ImportPlan, { files, ports, now }: Around): Promise<string | null> {
  const { generation } = await ports.overview(now);
  if (generation !== plan.generation) {
    const then = plan.generation === null ? "an empty tree" : `generation ${plan.generation}`;
    const since =
      generation === null ? "no registry is in force now" : `generation ${generation} is in force now`;
    return `It was made against ${then}, and ${since}.`;
  }
  if (files.from !== "cache") return null;
  const cached = (await cacheValue(ports, now))?.sources ?? [];
  const digests = cached
    .filter(({ kind }) => kind !== "rdap-bootstrap")
    .flatMap(({ sha256 }) => sha256 ?? []);
  const same = sorted(digests) === sorted(plan.files.map(({ sha256 }) => sha256));
  return same ? null : "The files in the download cache are not those that it was made from.";
}

const sorted = (texts: readonly string[]) => [...new Set(texts)].sort().join();
