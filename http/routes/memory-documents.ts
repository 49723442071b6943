import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Type } from 'typebox';
import type { PendingDocument } from '../../actors/documents/document-desk.ts';
import { callerOf } from '../auth.ts';
import { BILLING_HEADERS, billingHeaders } from '../billing-headers.ts';
import { clientSignal } from '../client-signal.ts';
import type { HttpApp, HttpContext } from '../context.ts';
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

/** What was received of a form by the time its handler runs. */
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
    acceptForms(scope as unknown as FastifyInstance);
    scope.post<{ Body: Record<string, string | string[]> }>(
      '/memory/documents/extract',
      {
        config: { access: 'member', receiveBody: receive },
        // `readDocumentForm` reads what is text in a form.
        validatorCompiler: () => () => true,
        schema: {
          tags: ['memory'],
          operationId: 'extractMemoryDocument',
          summary: 'Remember a document',
          description: DESCRIPTION,
          consumes: ['multipart/form-data'],
          body: DocumentFormSchema as unknown as ReturnType<typeof Type.Unsafe<Record<string, string | string[]>>>,
          response: {
            202: responseOf({
              description: STORED,
              headers: BILLING_HEADERS,
              content: { 'application/json': { schema: successOf(ExtractedDocumentSchema, STORED) } },
            }),
            ...REFUSALS,
          },
        },
      },
      async (request, reply) => {
        const { pending, file, form, signal } = received.get(request)!;
        try {
          const { mediaType } = file;
          const name = fileNameOf(file.name);
          const by = memoryCallerOf(request);
          // Reading takes minutes at worst.
          await memory.requireMayStore({ ...form, by });
          const document = await pending.read({ workspaceId: by.workspaceId, name, mediaType, signal });
          signal.throwIfAborted();
          const ingested = await memory.ingestDocument({
            ...form,
            document,
            fileName: name,
            by,
          });
          if (ingested.charge !== null) reply.headers(billingHeaders(ingested.charge));
          return reply
            .code(202)
            .send(
              success({ ...presentIngested(ingested), document: presentDocument(document, { ...ingested, name }) }),
            );
        } finally {
          // Before the answer: whoever sends one after the other never has two.
          await pending.end();
        }
      },
    );
  });

  /** Takes a slot and then the form. All of it is over when the response is out, or its client gone. */
  async function receive(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const signal = clientSignal(reply, closing);
    const pending = await documents.begin({ userId: callerOf(request).userId });
    const end = () => {
      pending.end().catch((error: unknown) => logger.warn({ err: error }, 'a document could not be removed'));
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

const STORED = 'Read and stored; it is processed from now on.';

const DESCRIPTION = [
  'The text of a document, stored as POST /memory/ingest does; a long one in numbered parts, a memory each. Pages of a',
  'PDF that are pictures, and images, are recognised, in English; sheets and tables become Markdown. Each character of',
  'the text is charged once it was read; a document that cannot be read costs nothing, nor does one whose sender closes',
  'the connection before. A user has 2 documents at a time, and one more is refused before its body is read.',
].join(' ');
