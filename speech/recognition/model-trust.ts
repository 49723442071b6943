/** How often a model may break before anything was ever understood by it. */
const MOST_BREAKS = 3;
const OUT_FOR_MS = 600_000;

/**
 * Which models are out of service: those that load, but break on whatever is said, such as one whose tokens were cut off.
 * Each utterance would wait for several processes to load and die. A model that ever understood anything is trusted,
 * so that audio that it cannot bear keeps it from nobody else.
 */
export class ModelTrust {
  readonly #trusted = new Set<string>();
  readonly #breaks = new Map<string, { count: number; outUntilMs: number }>();

  noteUnderstood(model: string): void {
    this.#trusted.add(model);
    this.#breaks.delete(model);
  }

  /** True when this takes it out of service. After the time it is tried once more. */
  noteBroken(model: string): boolean {
    if (this.#trusted.has(model) || this.isOut(model)) return false;
    const count = (this.#breaks.get(model)?.count ?? 0) + 1;
    const isOut = count >= MOST_BREAKS;
    this.#breaks.set(model, { count, outUntilMs: isOut ? performance.now() + OUT_FOR_MS : 0 });
    return isOut;
  }

  isOut(model: string): boolean {
    return performance.now() < (this.#breaks.get(model)?.outUntilMs ?? 0);
  }
}
