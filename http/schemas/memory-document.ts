import { Type } from 'typebox';
import type { IngestDocumentRequest, IngestedMemory, NewMemoryText } from '../../actors/memory/memory-desk.ts';
import { isObject } from '../../runtime/is-object.ts';
import { undisguised } from '../../runtime/undisguised.ts';
import { fitsMetadata, METADATA_MAX_BYTES } from '../../storage/queries/memory-text.ts';
import { type InvalidField, validationFailed } from '../validation.ts';
import { nullable } from './envelope.ts';
import { IngestTypeSchema, titleOf } from './memory.ts';
import { IngestedSchema } from './memory-views.ts';
import { WorkspaceIdSchema } from './workspace.ts';

const MAX_TITLE_CHARACTERS = 500;

/** Documents the form of `POST /memory/documents/extract`. `readDocumentForm` validates it. */
export const DocumentFormSchema = Type.Object(
  {
    file: Type.String({
      format: 'binary',
      description:
        'Document, up to 25 MB: PDF, DOCX, XLSX, PNG, JPEG, WebP, GIF, TIFF, plain text, Markdown or CSV. The format is detected from the content, not from the name.',
    }),
    title: Type.Optional(
      Type.String({
        maxLength: MAX_TITLE_CHARACTERS,
        description: 'Display title. Default: the title in the document, or else the file name.',
      }),
    ),
    type: Type.Optional(IngestTypeSchema),
    collection_id: Type.Optional(
      Type.String({ maxLength: 64, description: 'Id of a collection from GET /memory/collections.' }),
    ),
    infer: Type.Optional(
      Type.Boolean({ default: true, description: 'Extract facts and preferences, as in POST /memory/ingest.' }),
    ),
    metadata: Type.Optional(
      Type.String({
        description: `Metadata to filter searches by: a JSON object of up to ${METADATA_MAX_BYTES} bytes.`,
        examples: ['{"customer":"C-1042"}'],
      }),
    ),
    workspace_id: Type.Optional(WorkspaceIdSchema),
  },
  {
    additionalProperties: false,
    examples: [{ file: 'document', title: 'Terms of 2026', infer: false, metadata: '{"customer":"C-1042"}' }],
  },
);

/** Fields for `receiveForm`. */
export const DOCUMENT_FIELDS: Readonly<Record<string, 'once'>> = Object.fromEntries(
  Object.keys(DocumentFormSchema.properties)
    .filter((name) => name !== 'file')
    .map((name) => [name, 'once']),
);

export type DocumentForm = Omit<NewMemoryText, 'text'>;

/** Treats an empty field as absent, because HTML forms send those. @throws TandemError `VALIDATION_FAILED` */
export function readDocumentForm(fields: Readonly<Record<string, string | string[]>>): DocumentForm {
  const invalid: InvalidField[] = [];
  const given = (name: string): string | undefined => {
    const value = fields[name];
    const text = typeof value === 'string' ? value.trim() : '';
    return text === '' ? undefined : text;
  };
  const refuse = (path: string, message: string) => void invalid.push({ path, message });

  const title = given('title');
  if ((title?.length ?? 0) > MAX_TITLE_CHARACTERS) {
    refuse('title', `must have at most ${MAX_TITLE_CHARACTERS} characters`);
  }
  const type = given('type');
  if (type !== undefined && !isType(type)) refuse('type', 'must be one of user, knowledge, hive');
  const collectionId = given('collection_id');
  if ((collectionId?.length ?? 0) > 64) refuse('collection_id', 'must have at most 64 characters');
  const infer = given('infer')?.toLowerCase() ?? 'true';
  if (!['true', 'false', '1', '0'].includes(infer)) refuse('infer', 'must be true or false');
  const metadata = metadataIn(given('metadata') ?? '{}');
  if (metadata === null) refuse('metadata', 'must be a JSON object');
  else if (!fitsMetadata(metadata)) refuse('metadata', `must have at most ${METADATA_MAX_BYTES} bytes of JSON`);
  if (invalid.length > 0) throw validationFailed(invalid);
  return {
    title: titleOf(title),
    type: isType(type) ? type : null,
    collectionId: collectionId ?? null,
    infer: infer === 'true' || infer === '1',
    metadata: metadata ?? {},
  };
}

function isType(type: string | undefined): type is 'user' | 'knowledge' | 'hive' {
  return type === 'user' || type === 'knowledge' || type === 'hive';
}

function metadataIn(text: string): Record<string, unknown> | null {
  try {
    const value = JSON.parse(text) as unknown;
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

const DocumentSchema = Type.Object({
  name: nullable(Type.String({ description: 'File name from the client.', examples: ['terms.pdf'] })),
  format: Type.Enum(['pdf', 'docx', 'xlsx', 'image', 'text', 'markdown', 'csv'], {
    description: 'Detected format.',
    examples: ['docx'],
  }),
  pages: nullable(
    Type.Integer({
      description: 'Pages of a PDF, sheets of a workbook, or 1 for an image. Null for other formats.',
      examples: [12],
    }),
  ),
  characters: Type.Integer({ description: 'Length of the extracted text. Billed.', examples: [31_415] }),
  is_ocr: Type.Boolean({
    description: 'True if text was recognised in images, which can contain errors.',
    examples: [false],
  }),
  warnings: Type.Array(Type.String(), {
    description: 'Content that was left out.',
    examples: [['2 pictures in the document were not read.']],
  }),
});

export const ExtractedDocumentSchema = Type.Object({ ...IngestedSchema.properties, document: DocumentSchema });

export function fileNameOf(name: string | null): string | null {
  const shown = undisguised(name ?? '')
    .slice(0, MAX_NAME_CHARACTERS)
    .toWellFormed()
    .trim();
  return shown === '' ? null : shown;
}

const MAX_NAME_CHARACTERS = 255;

export function presentDocument(
  document: IngestDocumentRequest['document'],
  { name, results }: { name: string | null; results: readonly IngestedMemory[] },
) {
  const { format, pageCount, sections, isOcr, warnings } = document;
  const charged = results.map((result) => (result.outcome === 'queued' ? result.characters : null));
  const characters = charged.includes(null)
    ? sections.reduce((sum, { text }) => sum + text.length - (text.match(PAIR)?.length ?? 0), 0)
    : charged.reduce<number>((sum, count) => sum + count!, 0);
  return { name, format, pages: pageCount, characters, is_ocr: isOcr, warnings };
}

/** A surrogate pair counts as one character. */
const PAIR = /[\ud800-\udbff][\udc00-\udfff]/g;
