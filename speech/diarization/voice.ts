/** A model of a voice from some stretches of speech. Only comparable with its own kind. */
export interface Voice<Kind> {
  /** Frames of speech it is based on. */
  readonly frames: number;
  /** Below 1, rather the same voice than two. Symmetric. */
  distanceTo(other: Kind): number;
  /** Combines both. */
  joinedWith(other: Kind): Kind;
}
