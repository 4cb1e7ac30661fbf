/**
 * Advice on the next crawlers' places against the best choice by true RTTs, over generated worlds. The median and the
 * spread over seeds. Run: npm run bench -- placement [SEEDS]
 */
import { adviceFigures } from "./placement/advice-world.ts";

const seeds = Number(process.argv[2] ?? 10);
const most = 3;

for (const crawlers of [30, 60])
  for (const noiseMs of [0, 3, 10]) {
    const all = Array.from({ length: seeds }, (_, at) =>
      adviceFigures({ seed: at + 1, crawlers, sites: 1_000, noiseMs, most }),
    ).filter((one) => one !== null);
    const text = (values: readonly number[]) => {
      const sorted = values.toSorted((a, b) => a - b);
      const percent = (value: number) => (100 * value).toFixed(0);
      return `${percent(sorted[sorted.length >> 1]!)} % (${percent(sorted[0]!)} to ${percent(sorted.at(-1)!)})`;
    };
    const steps = Array.from({ length: most }, (_, step) => step);
    console.log(
      `${Math.floor(crawlers / 3)} crawlers, ${all.length} of ${seeds} worlds, ${Math.min(...all.map(({ candidates }) => candidates))} to ` +
        `${Math.max(...all.map(({ candidates }) => candidates))} candidates, noise ${noiseMs} ms: ` +
        steps
          .map(
            (step) =>
              `${step + 1}: advised ${text(all.map(({ advised }) => advised[step]!))}, own subnets alone ` +
              text(all.map(({ homeOnly }) => homeOnly[step] ?? 0)),
          )
          .join("; ") +
        `; at random ${text(all.map(({ random }) => random))}; expected of true ${text(all.map(({ expected }) => expected))}`,
    );
  }
