import type { FastifyReply, FastifyRequest } from 'fastify';
import type { PendingDocument } from '../../actors/documents/document-desk.ts';
import { callerOf, principalOf } from '../auth.ts';
import { billingHeaders } from '../billing-headers.ts';
import { clientSignal } from '../client-signal.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { whileAuthorized } from '../credential-watch.ts';
import { acceptForms, receiveForm, type UploadedFile } from '../multipart.ts';
import { REFUSALS, responseOf, success, successOf } from '../schemas/envelope.ts';
import {
  DOCUMENT_FIELDS,
  type DocumentForm,
  DocumentFormSchema,
  ExtractedDocumentSchema,
  fileNameOf,
  presentDocument,
  readDocumentForm,
} from '../schemas/memory-document.ts';
import { presentIngested } from '../schemas/memory-views.ts';
import { memoryCallerOf } from './memory.ts';

const MAX_FILE_BYTES = 25 * 2 ** 20;

/** Set by `receive` before the handler runs. */
interface Received {
  pending: PendingDocument;
  file: UploadedFile;
  form: DocumentForm;
  signal: AbortSignal;
}

export function memoryDocumentRoutes(app: HttpApp, context: HttpContext): void {
  const { documents, memory, closing, logger } = context;
  const received = new WeakMap<FastifyRequest, Received>();

  app.register(async (scope: HttpApp) => {
    acceptForms(scope);
    scope.post<{ Body: Record<string, string | string[]> }>(
      '/memory/documents/extract',
      {
        config: { access: 'member', receiveBody: receive, billed: true },
        // `readDocumentForm` parses and validates the strings of the form.
        validatorCompiler: () => () => true,
        schema: {
          tags: ['memory'],
          operationId: 'extractMemoryDocument',
          summary: 'Ingest a document',
          description: DESCRIPTION,
          consumes: ['multipart/form-data'],
          body: DocumentFormSchema,
          response: {
            202: responseOf({
              description: STORED,
              content: { 'application/json': { schema: successOf(ExtractedDocumentSchema, STORED) } },
            }),
            ...REFUSALS,
          },
        },
      },
      async (request, reply) => {
        const { pending, file, form, ...upload } = received.get(request)!;
        const principal = principalOf(request);
        const ended = new AbortController();
        const signal = AbortSignal.any([upload.signal, ended.signal]);
        try {
          const { mediaType } = file;
          const name = fileNameOf(file.name);
          const by = memoryCallerOf(request);
          // Check first, because reading can take minutes.
          await memory.requireMayStore({ ...form, by });
          const document = await whileAuthorized(context, { principal, ended }, async () => {
            const read = await pending.read({ workspaceId: by.workspaceId, name, mediaType, signal });
            signal.throwIfAborted();
            return read;
          });
          const ingested = await memory.ingestDocument({
            ...form,
            document,
            fileName: name,
            by,
          });
          if (ingested.charge !== null) reply.headers(billingHeaders(ingested.charge, principal));
          return reply
            .code(202)
            .send(
              success({ ...presentIngested(ingested), document: presentDocument(document, { ...ingested, name }) }),
            );
        } finally {
          // Before the response, so that a client that sends documents one by one stays within its limit.
          await pending.end();
        }
      },
    );
  });

  /** Reserves a slot and receives the form. Releases slot and file when the connection is done. */
  async function receive(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const signal = clientSignal(reply, closing);
    const pending = await documents.begin({ userId: callerOf(request).userId });
    const end = () => {
      pending.end().catch((error: unknown) => logger.warn({ err: error }, 'deleting an uploaded document failed'));
    };
    if (reply.raw.closed) end();
    else reply.raw.once('close', end);
    try {
      const { files, fields } = await receiveForm(request, {
        fileField: 'file',
        fields: DOCUMENT_FIELDS,
        pathOf: () => pending.uploadPath,
        maxFileBytes: MAX_FILE_BYTES,
        signal,
      });
      received.set(request, { pending, file: files[0]!, form: readDocumentForm(fields), signal });
      request.body = fields;
    } catch (error) {
      await pending.end();
      throw error;
    }
  }
}

const STORED = 'The document was read, stored and queued for processing.';

const DESCRIPTION = [
  'Extracts the text of a document and stores it like POST /memory/ingest; a long document becomes several numbered',
  'memories. Scanned PDF pages and images are read with OCR, in English. Sheets and tables become Markdown. Each character',
  'of the extracted text is charged after extraction. A document that cannot be read is free, and so is one whose upload',
  'is cancelled. Each user can have 2 documents read at a time; further ones are rejected with DOCUMENT_CONCURRENCY_LIMIT',
  'before their body is read.',
].join(' ');
