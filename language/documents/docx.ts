import mammoth from 'mammoth';
import type { ReadDocument } from './document-reader.ts';
import { withKnownElements } from './known-elements.ts';
import type { OfficePackage } from './office-package.ts';
import { storedPackage } from './stored-package.ts';
import { wordMarkdown } from './word-markdown.ts';

/** @throws Error if the document is damaged */
export async function readDocx({ parts, title, warnings }: OfficePackage): Promise<ReadDocument> {
  let text = '';
  await mammoth.convertToHtml(
    { buffer: storedPackage(withKnownElements(parts)) },
    {
      includeEmbeddedStyleMap: false,
      externalFileAccess: false,
      // mammoth's own Markdown has no tables. This hook writes the Markdown and leaves mammoth nothing to convert.
      transformDocument: (document) => {
        text = wordMarkdown(document);
        return { ...document, children: [] };
      },
    },
  );
  return {
    format: 'docx',
    title,
    sections: [{ heading: null, page: null, text }],
    pageCount: null,
    isOcr: false,
    warnings,
  };
}
