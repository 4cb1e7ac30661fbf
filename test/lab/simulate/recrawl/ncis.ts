/**
 * GREEDY-NCIS (R. Busa-Fekete, J. Zimmert, A. György et al., "A scalable crawling algorithm utilizing noisy change-indicating
 * signals", WWW 2025, arXiv 2502.02430) beside even distances and the best rates, on pages whose changes are signalled, well
 * or badly. One page is fetched every turn, so that the total is the same whatever is preferred. Rates are spread
 * log-normally, importance by back-links; time is in days, and a copy is current until the first change after its fetch.
 * It did not go into the coordinator (ops/decisions/0045): test/bench/results/recrawl-signals.md has the figures.
 */
import { Command, InvalidArgumentError, Option } from "commander";
import { optimalRates } from "#coordinator/crawl/recrawl/optimal-rates";
import { boundedInteger } from "#ops/cli/bounded-number";
import { formatTable } from "#ops/cli/output";
import { SeededRandom } from "#ops/world/seeded-random";

/** Of the changes, the share that is signalled; of the signals, the share that is of no change. */
interface SignalQuality {
  readonly recall: number;
  readonly falseShare: number;
}

interface SignalScenario {
  readonly seed: number;
  readonly pages: number;
  /** Fetches in all; each page gets one a day on the average, and changes as often. */
  readonly turns: number;
  readonly quality: SignalQuality;
}

const signalStrategies = ["fixed", "optimal", "greedy", "ncis"] as const;
export type SignalStrategy = (typeof signalStrategies)[number];

/** 0, 50 and 90 % of the changes signalled; 0, 10 and 50 % of the signals false. */
const usualQualities = [0, 0.5, 0.9].flatMap((recall) =>
  [0, 0.1, 0.5].map((falseShare) => ({ recall, falseShare })),
);

/** Of the logarithms of change rates, between hosts and between the pages of one together. */
const rateSpread = 1.28;

const warmUp = 0.25;

interface Event {
  readonly day: number;
  readonly page: number;
  readonly isChange: boolean;
  readonly isSignal: boolean;
}

/** Share of the time in which copies are current, by importance, from a quarter of the run on. */
export function signalFreshness(strategy: SignalStrategy, scenario: SignalScenario): number {
  const { pages, turns } = scenario;
  const world = drawWorld(scenario);
  const days = turns / pages;
  const from = warmUp * days;
  const lastFetch = new Float64Array(pages);
  const signals = new Uint32Array(pages);
  const staleFrom = new Float64Array(pages).fill(Number.POSITIVE_INFINITY);
  const choose = chooserOf(strategy, { ...world, scenario, lastFetch, signals });
  let [fresh, next] = [0, 0];
  const count = (page: number, until: number) => {
    const since = Math.max(from, lastFetch[page]!);
    fresh += world.importance[page]! * Math.max(0, Math.min(until, staleFrom[page]!) - since);
  };
  for (let turn = 1; turn <= turns; turn++) {
    const now = turn / pages;
    for (; next < world.events.length && world.events[next]!.day <= now; next++) {
      const { page, day, isChange, isSignal } = world.events[next]!;
      if (isChange) staleFrom[page] = Math.min(staleFrom[page]!, day);
      if (isSignal) signals[page]! += 1;
    }
    const page = choose(now);
    count(page, now);
    lastFetch[page] = now;
    signals[page] = 0;
    staleFrom[page] = Number.POSITIVE_INFINITY;
  }
  for (let page = 0; page < pages; page++) count(page, days);
  return fresh / world.importance.reduce((sum, one) => sum + one, 0) / (days - from);
}

function drawWorld({ seed, pages, turns, quality }: SignalScenario) {
  const random = new SeededRandom(seed);
  const drawn = Float64Array.from({ length: pages }, () => Math.exp(rateSpread * random.normal()));
  const total = drawn.reduce((sum, rate) => sum + rate, 0);
  const changesPerDay = drawn.map((rate) => (rate * pages) / total);
  const importance = Float64Array.from(
    { length: pages },
    () => 1 + Math.log2(1 + Math.floor((1 - random.next()) ** -1 - 1)),
  );
  const { recall, falseShare } = quality;
  // With no recall, as many false ones come as with all of it.
  const falsePerChange = ((recall === 0 ? 1 : recall) * falseShare) / (1 - falseShare);
  const events: Event[] = [];
  const at = new SeededRandom(seed + 1);
  const draw = (rate: number, event: (day: number) => Event) => {
    if (rate <= 0) return;
    for (let day = at.exponential(1 / rate); day < turns / pages; day += at.exponential(1 / rate))
      events.push(event(day));
  };
  changesPerDay.forEach((rate, page) => {
    draw(rate, (day) => ({ day, page, isChange: true, isSignal: at.chance(recall) }));
    draw(rate * falsePerChange, (day) => ({ day, page, isChange: false, isSignal: true }));
  });
  events.sort((a, b) => a.day - b.day);
  return { changesPerDay, importance, events };
}

interface Seen {
  readonly scenario: SignalScenario;
  readonly changesPerDay: Float64Array;
  readonly importance: Float64Array;
  readonly lastFetch: Float64Array;
  /** Since then. */
  readonly signals: Uint32Array;
}

function chooserOf(strategy: SignalStrategy, seen: Seen): (now: number) => number {
  const { scenario, changesPerDay, importance, lastFetch, signals } = seen;
  if (strategy === "fixed") return () => least(lastFetch);
  if (strategy === "optimal") {
    const mostPerDay = new Float64Array(scenario.pages).fill(Number.POSITIVE_INFINITY);
    const rates = optimalRates({ changesPerDay, importance, mostPerDay }, scenario.pages);
    const random = new SeededRandom(scenario.seed + 2);
    const due = rates.map((rate) => random.next() / rate);
    return (now) => {
      const page = least(due);
      // On its own clock: one that was late is not late ever after.
      due[page] = Math.max(due[page]!, now - 1 / rates[page]!) + 1 / rates[page]!;
      return page;
    };
  }
  const quality = strategy === "ncis" ? believed(scenario.quality) : null;
  const step = quality === null ? 0 : -Math.log(quality.falseShare) / (1 - quality.recall);
  const valueAt = quality === null ? plainValue : valueTable(quality);
  return (now) => {
    let [best, most] = [0, -1];
    for (let page = 0; page < scenario.pages; page++) {
      const wait = (now - lastFetch[page]!) * changesPerDay[page]! + signals[page]! * step;
      const value = (importance[page]! / changesPerDay[page]!) * valueAt(wait);
      if (value > most) [best, most] = [page, value];
    }
    return best;
  };
}

function least(values: Float64Array): number {
  let at = 0;
  for (let page = 1; page < values.length; page++) if (values[page]! < values[at]!) at = page;
  return at;
}

// The crawl value. Times are in mean times between two changes. Changes that nobody signals come at rate α = 1 − recall,
// signals at γ = recall/(1 − q), false ones at ν = qγ, q being `falseShare`. A signal ages a copy as much as −ln(q)/α of time.
// With the wait w from a fetch to the next and step = −ln(q)/α,
//   length(w) = Σ over n of 1/γ · P(Poisson(γ·(w − n·step)) > n)
//   fresh(w) = Σ over n of ν^n/(1 + ν)^(n+1) · P(Poisson((1 + ν)·(w − n·step)) > n)
//   value(w) = fresh(w) − e^(−α·w) · length(w)
// which is 1 − (1 + w)e^(−w) without signals.

const plainValue = (wait: number) => 1 - (1 + wait) * Math.exp(-wait);

/** Nobody signals everything, and no signal is believed entirely; null: they say nothing. */
function believed({ recall, falseShare }: SignalQuality): SignalQuality | null {
  if (recall < 0.1 || falseShare > 0.95) return null;
  return { recall: Math.min(0.95, recall), falseShare: Math.max(0.02, falseShare) };
}

export function crawlValue(wait: number, { recall, falseShare }: SignalQuality): number {
  const alpha = 1 - recall;
  const gamma = recall / (1 - falseShare);
  const nu = gamma * falseShare;
  const step = -Math.log(falseShare) / alpha;
  let [length, fresh, weight] = [0, 0, 1 / (1 + nu)];
  for (let n = 0, left = wait; left > 0; n++, left = wait - n * step) {
    length += poissonAbove(n, gamma * left) / gamma;
    fresh += weight * poissonAbove(n, (1 + nu) * left);
    weight *= nu / (1 + nu);
  }
  return Math.min(1, Math.max(0, fresh - Math.exp(-alpha * wait) * length));
}

/** P(N > n) for N of a Poisson distribution of that mean. */
function poissonAbove(n: number, mean: number): number {
  let term = Math.exp(-mean);
  let below = term;
  for (let k = 1; k <= n; k++) below += term *= mean / k;
  return Math.max(0, 1 - below);
}

/** Closer where the wait is short; beyond the end a fetch adds all that it ever does but for e^(−20). */
function valueTable(quality: SignalQuality): (wait: number) => number {
  const [steps, end] = [800, 20 / (1 - quality.recall)];
  const values = Float64Array.from({ length: steps + 2 }, (_, at) =>
    crawlValue(end * (at / steps) ** 2, quality),
  );
  return (wait) => {
    const at = Math.min(steps, Math.sqrt(wait / end) * steps);
    const low = Math.floor(at);
    return values[low]! + (at - low) * (values[low + 1]! - values[low]!);
  };
}

interface Options {
  readonly quality: readonly SignalQuality[];
  readonly pages: number;
  readonly fetches: number;
  readonly seeds: number;
}

export function ncisCommand(): Command {
  const whole = (flags: string, value: number, [from, to]: readonly [number, number]) =>
    new Option(flags).default(value).argParser(boundedInteger(from, to));
  return new Command("ncis")
    .description("pages whose changes are signalled, well or badly: how fresh each strategy keeps them")
    .addOption(
      new Option("--quality <recall/false,…>", "shares of changes signalled and of signals that are false")
        .default(usualQualities, "nine")
        .argParser(qualities),
    )
    .addOption(whole("--pages <n>", 400, [2, 10_000]))
    .addOption(whole("--fetches <n>", 60_000, [100, 1_000_000]))
    .addOption(whole("--seeds <n>", 3, [1, 100]))
    .action((options: Options) => {
      process.stdout.write(`${signalTable(options)}\n`);
    });
}

function signalTable({ quality, pages, fetches, seeds }: Options): string {
  const right = (title: string) => ({ title, align: "right" as const });
  const rows = quality.map((one) => [
    ...[one.recall, one.falseShare].map((share) => `${Math.round(100 * share)} %`),
    ...signalStrategies.map((strategy) => {
      const runs = Array.from({ length: seeds }, (_, seed) =>
        signalFreshness(strategy, { seed: seed + 1, pages, turns: fetches, quality: one }),
      );
      const mean = runs.reduce((sum, run) => sum + run, 0) / seeds;
      const half = (Math.max(...runs) - Math.min(...runs)) / 2;
      return `${(100 * mean).toFixed(1)} ±${(100 * half).toFixed(1)}`;
    }),
  ]);
  const titles = ["recall", "false", ...signalStrategies].map(right);
  return `Share of time in which copies are current, in %, by importance\n\n${formatTable(titles, rows)}`;
}

function qualities(text: string): SignalQuality[] {
  return text.split(",").map((part) => {
    const [recall = Number.NaN, falseShare = Number.NaN] = part.split("/").map(Number);
    if (recall >= 0 && recall <= 1 && falseShare >= 0 && falseShare < 1) return { recall, falseShare };
    throw new InvalidArgumentError(`"${part.slice(0, 40)}": two shares are expected, as in 0.8/0.2.`);
  });
}
