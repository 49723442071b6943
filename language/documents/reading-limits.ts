/** What reading a document may take, all of it in the process that reads. Beyond that it is `DOCUMENT_TOO_LARGE`. */
export const READING_LIMITS = {
  fileBytes: 32 * 2 ** 20,
  wallMs: 180_000,
  cpuSeconds: 180,
  residentBytes: 1.25 * 2 ** 30,
  /** Node, tesseract and the decoder of faxes reserve more than 12 GB that they do not use. This stops what is faster than whoever looks. */
  addressSpaceBytes: 18 * 2 ** 30,
  heapBytes: 768 * 2 ** 20,
  /** Of the account of it that the process writes. */
  outputBytes: 32 * 2 ** 20,

  /** Of text. */
  characters: 2_000_000,
  pages: 2_000,
  /** Of a workbook, those without a value included where one further down or to the right has one. */
  cells: 2_000_000,
  sheets: 500,
  picturePixels: 40_000_000,
  pictureSide: 20_000,

  packageEntries: 5_000,
  /** Of the parts of an Office file that are looked at, inflated. */
  packageBytes: 96 * 2 ** 20,
  /** Of one part, once it is larger than `ratioFromBytes`. Text of a person is far below. */
  packageRatio: 250,
  ratioFromBytes: 4 * 2 ** 20,
} as const;

/** Beyond these the rest is left out, with a warning. */
export const RECOGNITION_LIMITS = {
  /** Pictures of pages. */
  pictures: 20,
  picturesPerPage: 4,
  /** Time from the first picture after which no further one is begun. */
  wallMs: 60_000,
  /** Both sides are at least so long, or nobody could read it. */
  fewestPixels: 32,
} as const;
