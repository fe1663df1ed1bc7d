const { namespace } = document.getElementById("swagger-ui").dataset;

window.ui = SwaggerUIBundle({
  url: `${namespace}/openapi.json${window.location.search}`,
  dom_id: "#swagger-ui",
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  validatorUrl: null,
  // Colours make a long answer, such as this description, several times slower to show.
  syntaxHighlight: false,
  presets: [SwaggerUIBundle.presets.apis],
  layout: "BaseLayout",
  // The description names the public address of the service. Requests go to the address that this page was
  // loaded from, which may be another one (localhost and 127.0.0.1).
  requestInterceptor: (request) => {
    const path = request.url.slice(request.url.indexOf(namespace));
    request.url = new URL(path, document.baseURI).href;
    return request;
  },
});
