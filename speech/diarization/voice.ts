/** What is known of how somebody sounds, from some stretches of speech. Voices of one kind compare with each other only. */
export interface Voice<Kind> {
  /** Frames of speech it was learnt from. */
  readonly frames: number;
  /** Below 1 the two are rather one voice than two. Symmetric. */
  distanceTo(other: Kind): number;
  /** What is known from both. */
  joinedWith(other: Kind): Kind;
}
