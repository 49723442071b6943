import { setTimeout as sleep } from 'node:timers/promises';
import { API_OPTIONS, openApi } from '../api-access.ts';
import type { Api } from '../api-client.ts';
import { type Command, defineAction, type Options, type Outcome, UsageError } from '../command.ts';
import { everyPage } from '../every-page.ts';
import { pathIn } from '../host.ts';
import { numberOf, objectOf } from '../option-values.ts';
import { readInput } from '../standard-input.ts';
import { fields, oneLine, table } from '../terminal.ts';

const METADATA_EXAMPLE = '{"customer":"C-1042"}';

const STORE_OPTIONS = {
  title: { value: 'TITLE', about: 'title; search finds its words too' },
  type: { value: 'TYPE', about: 'user (default): private; knowledge or hive: readable by the whole workspace' },
  collection: { value: 'ID', about: 'id from tandem memory collections' },
  metadata: { value: 'JSON', about: `metadata for search filters: '${METADATA_EXAMPLE}'` },
  'no-infer': { about: 'extract no facts with the language model' },
  wait: { about: 'wait until it is ready' },
} as const satisfies Options;

const add = defineAction({
  summary: 'Store a memory. Search finds it by words at once, by meaning once it is ready.',
  parameters: [{ name: 'TEXT', about: 'at most 100000 characters, each billed; - reads it from standard input' }],
  options: { ...STORE_OPTIONS, ...API_OPTIONS },
  async run({ host, values, arguments: [given = ''] }) {
    const text = given === '-' ? await readInput(host) : given;
    if (text.trim() === '') throw new UsageError('TEXT is empty (tandem memory add --help explains)');
    const { title, type, collection } = values;
    const api = openApi(host, values);
    const ingested = await api.post<Ingested>('/memory/ingest', {
      ...{ text, title, type, collection_id: collection },
      infer: values['no-infer'] ? false : undefined,
      metadata: metadataOf(values.metadata),
    });
    return await stored(api, ingested, { waits: values.wait });
  },
});

const extract = defineAction({
  summary: 'Store the text of a document. Text in images is recognised (OCR).',
  parameters: [{ name: 'FILE', about: 'PDF, DOCX, XLSX, image, text, Markdown or CSV, up to 25 MB' }],
  options: { ...STORE_OPTIONS, ...API_OPTIONS },
  async run({ host, values, arguments: [file = ''], terminal }) {
    const given = Object.entries({
      title: values.title,
      type: values.type,
      collection_id: values.collection,
      metadata: metadataOf(values.metadata) && values.metadata,
      infer: values['no-infer'] && 'false',
    }).filter((entry): entry is [string, string] => entry[1] !== undefined);
    const api = openApi(host, values);
    const { data } = await api.upload<{ data: Ingested & { document: Document } }>('/memory/documents/extract', {
      ...{ filePath: pathIn(host.cwd(), file), fields: given },
      fileField: 'file',
      onProgress: ({ sentBytes, totalBytes }) => {
        terminal.progress(sentBytes < totalBytes ? 'uploading the document' : 'reading the document');
      },
    });
    const outcome = await stored(api, data, { waits: values.wait });
    const { format, pages, characters, is_ocr, warnings } = data.document;
    const read = fields([
      ['document', `${format}${pages === null ? '' : `, ${pages} pages`}${is_ocr ? ', text recognised' : ''}`],
      ['characters', characters],
      ...warnings.map((warning) => ['warning', oneLine(warning)] as const),
    ]);
    return { ...outcome, data: { ...data, ...(outcome.data as object) }, text: `${read}\n${outcome.text}` };
  },
});

const search = defineAction({
  summary: 'Search memories by words and meaning, best first. Billed per character of the query.',
  parameters: [{ name: 'QUERY', about: 'question or words; words "in quotes" must occur, words after - must not' }],
  options: {
    limit: { value: 'N', about: 'number of results, 1 to 100 (default 10)' },
    type: { value: 'TYPE', about: 'only user, team, knowledge or hive' },
    collection: { value: 'ID', about: 'only in this collection', multiple: true },
    filter: { value: 'JSON', about: `metadata filter: '${METADATA_EXAMPLE}', '{"year":{"$gte":2024}}'` },
    threshold: { value: 'N', about: 'minimum score, 0 to 1' },
    ...API_OPTIONS,
  },
  async run({ host, values, arguments: [query = ''], terminal }) {
    const found = await openApi(host, values).post<Found>('/memory/search', {
      query,
      limit: numberOf('--limit', values.limit),
      type: values.type,
      collection_ids: values.collection,
      filters: objectOf('--filter', { text: values.filter, example: METADATA_EXAMPLE }),
      threshold: numberOf('--threshold', values.threshold),
    });
    const lines = found.results.map(({ id, memory, title, score }) => {
      const heading = title === null ? '' : `${terminal.paint('bold', oneLine(title))}: `;
      return `${score.toFixed(2)}  ${heading}${oneLine(memory)}\n      ${terminal.paint('dim', id)}`;
    });
    if (found.degraded) terminal.report('warning: found by words alone, and not billed');
    return { data: found, text: lines.length === 0 ? 'Nothing like it is remembered.' : lines.join('\n') };
  },
});

const status = defineAction({
  summary: 'Show the processing status of a memory, and why it failed.',
  parameters: [{ name: 'MEMORY', about: 'memory id, as add and search print it' }],
  options: { wait: { about: 'wait until it is ready' }, ...API_OPTIONS },
  async run({ host, values, arguments: [id = ''] }) {
    return outcomeOf(await statusOf(openApi(host, values), id, { waits: values.wait }));
  },
});

const collections = defineAction({
  summary: 'List the collections that you can read.',
  options: { type: { value: 'TYPE', about: 'only user, team, knowledge or hive' }, ...API_OPTIONS },
  async run({ host, values }) {
    const all = await allCollections(openApi(host, values), values.type);
    const rows = all.map(({ collection_id, label, type, memory_count }) => {
      return [collection_id, oneLine(label), type, memory_count];
    });
    const empty = 'There is none yet: tandem memory add makes your own.';
    return { data: { collections: all }, text: table(['ID', 'NAME', 'TYPE', 'MEMORIES'], rows, empty) };
  },
});

async function allCollections(api: Api, type: string | undefined): Promise<Collection[]> {
  const query = type === undefined || type === '' ? '' : `?${new URLSearchParams({ type })}`;
  const pages = await everyPage<{ collections: Collection[] }>(api, `/memory/collections${query}`);
  return pages.flatMap(({ collections }) => collections);
}

const retry = defineAction({
  summary: 'Retry a failed memory. Charged again, because the first charge was refunded.',
  parameters: [{ name: 'MEMORY', about: 'memory id, as add and search print it' }],
  options: { wait: { about: 'wait until it is ready' }, ...API_OPTIONS },
  async run({ host, values, arguments: [id = ''] }) {
    const api = openApi(host, values);
    const memory = await api.post<MemoryStatus>(`/memory/${encodeURIComponent(id)}/retry`);
    return outcomeOf(values.wait ? await statusOf(api, id, { waits: true }) : memory);
  },
});

const update = defineAction({
  summary: 'Change a memory. A new text is billed and processed again; title and metadata are free.',
  parameters: [{ name: 'MEMORY', about: 'memory id, as add and search print it' }],
  options: {
    text: { value: 'TEXT', about: 'new text; - reads it from standard input' },
    title: { value: 'TITLE', about: "new title; '' removes it" },
    metadata: { value: 'JSON', about: `keys to set, or with null to delete: '{"customer":"C-1043","draft":null}'` },
    wait: { about: 'wait until it is ready' },
    ...API_OPTIONS,
  },
  async run({ host, values, arguments: [id = ''] }) {
    const { title } = values;
    const text = values.text === '-' ? await readInput(host) : values.text;
    const change = { text, title: title === '' ? null : title, metadata: metadataOf(values.metadata) };
    if (Object.values(change).every((value) => value === undefined)) {
      throw new UsageError('--text, --title or --metadata is missing (tandem memory update --help explains)');
    }
    const api = openApi(host, values);
    const memory = await api.patch<MemoryStatus>(`/memory/${encodeURIComponent(id)}`, change);
    return outcomeOf(values.wait ? await statusOf(api, id, { waits: true }) : memory);
  },
});

const remove = defineAction({
  summary: 'Delete a memory permanently.',
  parameters: [{ name: 'MEMORY', about: 'memory id, as add and search print it' }],
  options: API_OPTIONS,
  async run({ host, values, arguments: [id = ''] }) {
    const data = await openApi(host, values).delete(`/memory/${encodeURIComponent(id)}`);
    return { data, text: `Memory ${id} is forgotten.` };
  },
});

export const memoryCommand: Command = {
  actions: { add, extract, search, status, update, retry, collections, delete: remove },
};

const POLL_MS = 500;

interface Ingested {
  collection_label: string;
  results: { id: string; status: string; message: string; deduplicated_into?: string }[];
}

interface Document {
  format: string;
  pages: number | null;
  characters: number;
  is_ocr: boolean;
  warnings: string[];
}

interface Found {
  results: { id: string; memory: string; title: string | null; score: number }[];
  degraded: boolean;
}

interface MemoryStatus {
  id: string;
  status: 'pending' | 'processing' | 'ready' | 'failed';
  stage: string | null;
  attempts: number;
  error: { code: string; message: string } | null;
}

interface Collection {
  collection_id: string;
  label: string;
  type: string;
  memory_count: number;
}

function metadataOf(text: string | undefined): object | undefined {
  return objectOf('--metadata', { text, example: METADATA_EXAMPLE });
}

/** A long document becomes several memories. */
async function stored(api: Api, ingested: Ingested, { waits }: { waits?: true | undefined }): Promise<Outcome> {
  const { results, collection_label } = ingested;
  const [first] = results;
  if (first === undefined || !waits) {
    const rows = [
      ...results.map(({ id }) => ['id', id] as const),
      ['collection', oneLine(collection_label)],
      ['status', oneLine(`${first?.status ?? '-'}: ${first?.message ?? ''}`)],
    ] as const;
    return { data: ingested, text: fields(rows) };
  }
  const outcomes: Outcome[] = [];
  for (const { id } of results) outcomes.push(outcomeOf(await statusOf(api, id, { waits })));
  if (outcomes.length === 1) return outcomes[0]!;
  const failure = outcomes.find((outcome) => outcome.failure !== undefined)?.failure;
  return {
    data: { memories: outcomes.map(({ data }) => data) },
    text: outcomes.map(({ text }) => text).join('\n'),
    ...(failure !== undefined && { failure }),
  };
}

/** @throws CommandError */
async function statusOf(api: Api, id: string, { waits }: { waits?: true | undefined }): Promise<MemoryStatus> {
  const ask = () => api.get<MemoryStatus>(`/memory/${encodeURIComponent(id)}/status`);
  let memory = await ask();
  while (waits && (memory.status === 'pending' || memory.status === 'processing')) {
    await sleep(POLL_MS);
    memory = await ask();
  }
  return memory;
}

function outcomeOf(memory: MemoryStatus): Outcome {
  const { id, status, stage, attempts, error } = memory;
  const text = fields([
    ['id', id],
    ['status', stage === null ? status : `${status}: ${stage}`],
    ['attempts', attempts],
    ...(error === null ? [] : [['error', oneLine(`${error.message} (${error.code})`)] as const]),
  ]);
  if (status !== 'failed') return { data: memory, text };
  const message = `the memory could not be processed: tandem memory retry ${id} tries again`;
  return { data: memory, text, failure: { code: error?.code ?? 'MEMORY_FAILED', message } };
}
