import { Type } from 'typebox';
import type { IngestDocumentRequest, IngestedMemory, NewMemoryText } from '../../actors/memory/memory-desk.ts';
import { type InvalidField, validationFailed } from '../validation.ts';
import { nullable } from './envelope.ts';
import { fitsMetadata, IngestTypeSchema, METADATA_MAX_BYTES, titleOf } from './memory.ts';
import { IngestedSchema } from './memory-views.ts';

const MOST_TITLE_CHARACTERS = 500;

/** The form of `POST /memory/documents/extract`: for the document. `readDocumentForm` reads it. */
export const DocumentFormSchema = Type.Object(
  {
    file: Type.String({
      format: 'binary',
      description:
        'The document, up to 25 MB: PDF, DOCX, XLSX, PNG, JPEG, WebP, plain text, Markdown or CSV. What it is is told by its bytes, whatever it is called.',
    }),
    title: Type.Optional(
      Type.String({
        maxLength: MOST_TITLE_CHARACTERS,
        description: 'Default: what the document calls itself, or else the name of the file.',
      }),
    ),
    type: Type.Optional(IngestTypeSchema),
    collection_id: Type.Optional(
      Type.String({ maxLength: 64, description: 'A collection of GET /memory/collections.' }),
    ),
    infer: Type.Optional(Type.Boolean({ default: true, description: 'As in POST /memory/ingest.' })),
    metadata: Type.Optional(
      Type.String({
        description: `What searches can be filtered by: an object as JSON, up to ${METADATA_MAX_BYTES} bytes.`,
        examples: ['{"customer":"C-1042"}'],
      }),
    ),
    workspace_id: Type.Optional(Type.String({ format: 'uuid', description: 'Of a session; keys are tied to theirs.' })),
  },
  {
    additionalProperties: false,
    examples: [{ file: 'document', title: 'Terms of 2026', infer: false, metadata: '{"customer":"C-1042"}' }],
  },
);

/** What `receiveForm` lets through. */
export const DOCUMENT_FIELDS: Readonly<Record<string, 'once'>> = Object.fromEntries(
  Object.keys(DocumentFormSchema.properties)
    .filter((name) => name !== 'file')
    .map((name) => [name, 'once']),
);

export type DocumentForm = Omit<NewMemoryText, 'text'>;

/** A field that is empty is one that was left out: that is how pages send them. @throws TandemError `VALIDATION_FAILED` */
export function readDocumentForm(fields: Readonly<Record<string, string | string[]>>): DocumentForm {
  const invalid: InvalidField[] = [];
  const given = (name: string): string | undefined => {
    const value = fields[name];
    const text = typeof value === 'string' ? value.trim() : '';
    return text === '' ? undefined : text;
  };
  const refuse = (path: string, message: string) => void invalid.push({ path, message });

  const title = given('title');
  if ((title?.length ?? 0) > MOST_TITLE_CHARACTERS) {
    refuse('title', `must have at most ${MOST_TITLE_CHARACTERS} characters`);
  }
  const type = given('type');
  if (type !== undefined && !isType(type)) refuse('type', 'must be one of user, knowledge, hive');
  const collectionId = given('collection_id');
  if ((collectionId?.length ?? 0) > 64) refuse('collection_id', 'must have at most 64 characters');
  const infer = given('infer')?.toLowerCase() ?? 'true';
  if (!['true', 'false', '1', '0'].includes(infer)) refuse('infer', 'must be true or false');
  const metadata = metadataIn(given('metadata') ?? '{}');
  if (metadata === null) refuse('metadata', 'must be an object as JSON');
  else if (!fitsMetadata(metadata)) refuse('metadata', `must have at most ${METADATA_MAX_BYTES} bytes as JSON`);
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
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isObject ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

const DocumentSchema = Type.Object({
  name: nullable(Type.String({ description: 'As its sender calls it.', examples: ['terms.pdf'] })),
  format: Type.Enum(['pdf', 'docx', 'xlsx', 'image', 'text', 'markdown', 'csv'], { examples: ['docx'] }),
  pages: nullable(
    Type.Integer({ description: 'Of a PDF; sheets of a workbook; 1 for an image; null for others.', examples: [12] }),
  ),
  characters: Type.Integer({ description: 'Of its text; those that were charged.', examples: [31_415] }),
  is_ocr: Type.Boolean({ description: 'Whether text was recognised in pictures, which can err.', examples: [false] }),
  warnings: Type.Array(Type.String(), {
    description: 'What was left out.',
    examples: [['2 pictures in the document were not read.']],
  }),
});

export const ExtractedDocumentSchema = Type.Object({ ...IngestedSchema.properties, document: DocumentSchema });

/** As it may be shown and stored: nothing in it turns the direction of what is read. */
export function fileNameOf(name: string | null): string | null {
  const shown = (name ?? '')
    .replace(/[\p{Cc}\p{Bidi_C}]/gu, '')
    .slice(0, MOST_NAME_CHARACTERS)
    .toWellFormed()
    .trim();
  return shown === '' ? null : shown;
}

const MOST_NAME_CHARACTERS = 255;

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

/** Of surrogates, which are one character. */
const PAIR = /[\ud800-\udbff][\udc00-\udfff]/g;
