/** Seeded names for the emulated Internet's organisations, hosts and crawlers; each is given once only. */
import type { SeededRandom } from "./seeded-random.ts";

const adjectives =
  "amber blue bright calm cedar clear copper coral crimson early eastern emerald fair golden granite green grey hazel high ivory jade large laurel little lunar maple marble merry mild misty new noble northern oaken olive opal pearl plain quiet rapid red river rosy round royal ruby sandy scarlet silver slate solar southern spring steady stone summer sunny swift tall teal upper vivid western white wide winter young";
const nouns =
  "academy archive arena bakery bank bay bridge brewery canal castle choir clinic coast college cottage council dairy depot farm ferry field forest forum foundry gallery garden gazette grove guild harbour hill hospital hotel institute island journal kitchen lake lantern library lighthouse market meadow mill museum nursery observatory orchard park pier pharmacy press quarry railway school shop society stadium station studio theatre tower valley village vineyard works workshop";
const kinds = ["Ltd", "Inc", "Group", "Foundation", "Cooperative", "Society", "Holding", "Services"];

const adjectiveList = adjectives.split(" ");
const nounList = nouns.split(" ");

/** Hands out names that it has not given before. */
export class NameGiver {
  readonly #random: SeededRandom;
  readonly #given = new Set<string>();

  constructor(random: SeededRandom) {
    this.#random = random;
  }

  organisation(): string {
    const random = this.#random;
    const words = `${capital(random.pick(adjectiveList))} ${capital(random.pick(nounList))}`;
    return this.#unique(`${words} ${random.pick(kinds)}`, " ");
  }

  provider(city: string): string {
    return this.#unique(
      `${city} ${this.#random.pick(["Telecom", "Networks", "Online", "Hosting", "Broadband", "Datacom"])}`,
      " ",
    );
  }

  /** `silver-harbour-0042.example`: only under the reserved domains of RFC 2606. */
  host(index: number): string {
    const domain = this.#random.chance(0.7) ? "example" : "test";
    const number = String(index + 1).padStart(4, "0");
    return `${this.#random.pick(adjectiveList)}-${this.#random.pick(nounList)}-${number}.${domain}`;
  }

  /** `sao-paulo`, then `sao-paulo-2`, … */
  crawler(city: string): string {
    return this.#unique(city.toLowerCase().replaceAll(" ", "-"), "-");
  }

  #unique(name: string, separator: string): string {
    let candidate = name;
    for (let number = 2; this.#given.has(candidate); number++) candidate = `${name}${separator}${number}`;
    this.#given.add(candidate);
    return candidate;
  }
}

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}
