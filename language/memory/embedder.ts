/** Turns texts into points such that texts of like meaning are near one another. */
export interface Embedder {
  /** Of model and version: points of different names do not compare. */
  readonly name: string;
  /** Null until the first text, where a server decides. */
  readonly dimensions: number | null;
  /** Most texts at once. */
  readonly batchSize: number;
  /** Cosine of unrelated texts, on average. */
  readonly typicalCosine: number;
  /**
   * Evidence (`evidenceOfCosine`) below which a text that only its embedding finds is near the query by chance. How
   * near unrelated texts are depends on the embedder.
   */
  readonly leastEvidence: number;
  /**
   * Of length 1 each, in the order of the texts.
   * @throws TandemError `MEMORY_UNREACHABLE` when its server does not answer; the signal's reason
   */
  embed(texts: readonly string[], signal: AbortSignal): Promise<Float32Array[]>;
}
