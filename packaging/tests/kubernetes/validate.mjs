// Validates the documents of a YAML file against the schemas of Kubernetes. Prints them as JSON, or prints
// each fault and exits with 1.
//
//   node validate.mjs NPM_DIRECTORY tubed.yaml
//
// The validators of kubernetes-models find wrong values and missing fields, but accept unknown fields. Its
// types do not: TypeScript refuses a literal with a field that the type does not have.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

const [npmDirectory, path] = process.argv.slice(2).map((each) => resolve(each));
const require = createRequire(join(npmDirectory, "package.json"));
const typescript = require("typescript");
const yaml = require("yaml");

const faults = [];

function validate(document) {
  try {
    const { [document.kind]: Model } = require(`kubernetes-models/${document.apiVersion}/${document.kind}`);
    new Model(document).validate();
  } catch (error) {
    faults.push(`${document.kind}: ${error.message}`);
  }
}

function checkTypes(documents) {
  // The compiler looks for packages in the directories above the file.
  const directory = mkdtempSync(join(npmDirectory, "types-"));
  const file = join(directory, "documents.ts");
  const text = documents.map(({ apiVersion, kind }, i) =>
    `import { I${kind} as Type${i} } from "kubernetes-models/${apiVersion}/${kind}";\n` +
    `export const document${i}: Type${i} = ${JSON.stringify(documents[i])};\n`);
  try {
    writeFileSync(file, text.join(""));
    const options = { noEmit: true, strict: true, skipLibCheck: true, types: [] };
    for (const { messageText } of typescript.getPreEmitDiagnostics(typescript.createProgram([file], options))) {
      faults.push(typescript.flattenDiagnosticMessageText(messageText, "\n"));
    }
  } finally {
    rmSync(directory, { recursive: true });
  }
}

const parsed = yaml.parseAllDocuments(readFileSync(path, "utf8"));
for (const { errors } of parsed) faults.push(...errors.map((error) => error.message));
if (faults.length === 0) {
  const documents = parsed.map((document) => document.toJS());
  documents.forEach(validate);
  checkTypes(documents);
  if (faults.length === 0) console.log(JSON.stringify(documents));
}
for (const fault of faults) console.error(fault);
process.exitCode = faults.length === 0 ? 0 : 1;
