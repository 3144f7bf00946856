// Validates the description of the HTTP API against the schema of OpenAPI 3.1, resolves its
// references, and compares it with the description in JSON.
//
//   node validate_openapi.mjs NPM_DIRECTORY openapi.yaml openapi.json
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

const [npmDirectory, yamlPath, jsonPath] = process.argv.slice(2).map((path) => resolve(path));
const require = createRequire(join(npmDirectory, "package.json"));
const SwaggerParser = require("@apidevtools/swagger-parser");

const parsed = await SwaggerParser.parse(yamlPath);
assert.deepEqual(parsed, JSON.parse(readFileSync(jsonPath, "utf8")));
const api = await SwaggerParser.validate(yamlPath);
let operations = 0;
for (const [path, methods] of Object.entries(api.paths)) {
  for (const [method, operation] of Object.entries(methods)) {
    operations += 1;
    // OpenAPI's schema does not check that the parts of a path match the parameters.
    const parts = [...path.matchAll(/\{(.*?)\}/g)].map((part) => part[1]);
    const inPath = (operation.parameters ?? []).filter((one) => one.in === "path");
    assert.deepEqual(inPath.map((one) => one.name), parts, `${method} ${path}`);
    assert.ok(inPath.every((one) => one.required), `${method} ${path}`);
    assert.ok(operation.summary && operation.description, `${method} ${path}`);
  }
}
assert.ok(operations > 0);
console.log(`openapi.yaml is valid; ${operations} operations`);
