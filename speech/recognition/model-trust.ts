/** Limit of crashes before a model's first success. */
const MOST_BREAKS = 3;
const OUT_FOR_MS = 600_000;

/**
 * Takes models out of service that load but crash on any speech, for example because their tokens were truncated.
 * Otherwise each utterance would wait for several processes to load and die. A model that has succeeded once stays in
 * service, so that audio that crashes it affects only its sender.
 */
export class ModelTrust {
  readonly #trusted = new Set<string>();
  readonly #breaks = new Map<string, { count: number; outUntilMs: number }>();

  noteUnderstood(model: string): void {
    this.#trusted.add(model);
    this.#breaks.delete(model);
  }

  /** Returns whether this takes the model out of service. It is retried after a while. */
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
