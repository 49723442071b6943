/** Converts texts to embeddings; similar meanings give near vectors. */
export interface Embedder {
  /** Identifies model and version. Embeddings with different names are not comparable. */
  readonly name: string;
  /** Null until the first text if the server decides. */
  readonly dimensions: number | null;
  /** Texts per call. */
  readonly batchSize: number;
  /** Average cosine of unrelated texts. */
  readonly typicalCosine: number;
  /**
   * Least evidence (`evidenceOfCosine`) of a real match, for texts that only the embedder finds. Depends on the
   * embedder, because unrelated texts are nearer with some than with others.
   */
  readonly leastEvidence: number;
  /**
   * Returns unit vectors in the order of the texts.
   * @throws TandemError `MEMORY_UNREACHABLE` if its server does not answer; the signal's reason
   */
  embed(texts: readonly string[], signal: AbortSignal): Promise<Float32Array[]>;
}
