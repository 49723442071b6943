/** Limits of reading a document, enforced on its process. Exceeding one is `DOCUMENT_TOO_LARGE`. */
export const READING_LIMITS = {
  fileBytes: 32 * 2 ** 20,
  wallMs: 180_000,
  cpuSeconds: 180,
  residentBytes: 1.25 * 2 ** 30,
  /**
   * Stops allocations that are faster than the memory watch. Node, tesseract and the fax decoder reserve more than 12
   * GB of addresses without using them.
   */
  addressSpaceBytes: 18 * 2 ** 30,
  heapBytes: 768 * 2 ** 20,
  /** Output of the process. */
  outputBytes: 32 * 2 ** 20,

  /** Text, in characters. */
  characters: 2_000_000,
  pages: 2_000,
  /** Cells of a workbook, including empty ones above or to the left of a value. */
  cells: 2_000_000,
  sheets: 500,
  picturePixels: 40_000_000,
  pictureSide: 20_000,

  packageEntries: 5_000,
  /** Inflated size of the inspected parts of an Office file. */
  packageBytes: 96 * 2 ** 20,
  /** Compression ratio of a part larger than `ratioFromBytes`. Human text is far below. */
  packageRatio: 250,
  ratioFromBytes: 4 * 2 ** 20,
} as const;

/** Text recognition stops at these limits, with a warning. */
export const RECOGNITION_LIMITS = {
  pictures: 20,
  picturesPerPage: 4,
  /** Time after the first picture in which further ones are started. */
  wallMs: 60_000,
  /** Shortest side that can hold readable text. */
  fewestPixels: 32,
} as const;
