# A web server of the distribution. With a number: so many processes that share its socket.
require "webrick"

server = WEBrick::HTTPServer.new(Port: 0, BindAddress: "127.0.0.1", AccessLog: [], Logger: WEBrick::Log.new(File::NULL))
server.mount_proc("/") { |request, response| response.body = "hello #{request.query["n"]} " * 100 }
workers = ARGV[0].to_i.times.map { fork { trap(:TERM) { server.shutdown }; server.start } }
trap(:TERM) { workers.empty? ? server.shutdown : Process.kill(:TERM, *workers) }
puts server.config[:Port]
$stdout.flush
workers.empty? ? server.start : Process.waitall
